"""inchworm over HTTP: who comes in, what can be asked, and the pages that show it."""
