"""HTML pages: links, main text, and pages that are not what they seem.

Start with `document` (an open document, part by part); `parse` does the work, `main_text` finds the text in the frame.
A change of what is read raises `text.content.READER`.
"""
