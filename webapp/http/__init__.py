"""How the site is served: connections, their deadlines, and the process that listens."""
