/**
 * Start of the run page after the server's HTML is painted: its modules take longer to run than the
 * HTML takes to show. A hidden tab gets no frames, and starts at once.
 */

const start = () => import("./run-page.js");

if (document.hidden) start();
else requestAnimationFrame(() => setTimeout(start));
