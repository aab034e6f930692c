// Shared by all tabs: browsers keep few connections to one service, and a tab must not take one for itself.

import { Stream } from "./stream.js";

const ports = new Map(); // a tab, and what it watches
const stream = new Stream((event) => {
  for (const [port, views] of ports) if (!event.view || views.has(event.view)) port.postMessage(event);
});

self.onconnect = ({ ports: [port] }) => {
  ports.set(port, new Set());
  port.onmessage = ({ data }) => {
    if (data.watch) {
      ports.get(port)?.add(data.watch);
      stream.watch(data.watch, data.after);
    } else {
      const views = ports.get(port) ?? new Set();
      ports.delete(port);
      const watched = new Set([...ports.values()].flatMap((others) => [...others]));
      for (const view of views) if (!watched.has(view)) stream.drop(view);
    }
  };
};
