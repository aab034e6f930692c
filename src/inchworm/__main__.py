"""`python -m inchworm` is `inchworm`."""

from inchworm.cli import main

if __name__ == "__main__":
    main()
