"""What a page says of itself: its title, its author and dates, and what it says for machines.

Start with `describe` (metas, Open Graph, JSON-LD); `byline` looks at what people see where machines are told nothing,
`title` takes the site's name off a title. A change of what is read raises `text.content.READER`.
"""
