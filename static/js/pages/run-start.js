/**
 * Starts the run page once what the server sent is painted: its modules take longer to run than that
 * takes to show. A hidden tab gets no frames, and starts at once.
 */

const start = () => import("./run-page.js");

if (document.hidden) start();
else requestAnimationFrame(() => setTimeout(start));
