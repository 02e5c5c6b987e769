"""HTTP layer of the site: connections, their deadlines, and the process that listens."""
