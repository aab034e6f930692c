"""The dashboard: pages for people, made on the server, of the same verbs that the API calls."""
