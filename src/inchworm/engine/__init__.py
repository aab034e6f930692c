"""What a session is put together from. Each part can be loaded by itself: whoever only looks does not wait for asyncio,
curl and the HTML parser."""
