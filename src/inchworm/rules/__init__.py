"""Pure decisions: values in, values out.

No clock, network, file, database or chance: whatever a rule needs is passed in. A rule imports `model`, `job`,
`errors` and other rules, and nothing else of ours.

Rooms: `web` (what may be asked, and how), `page` (what an HTML page holds), `metadata` (what it says of itself),
`formats` (documents that are no HTML), `text` (text in other forms), `fields` (values taken out by selectors), `change`
(what is new), `order` (what comes first), `schedule` (when jobs run), `words` (sentences, numbers and times for
people). Start with `web.scope`.
"""
