// One connection to the service for everything that is watched: pages of views, lines of logs.

const RETRY_MS = 2000;
const SILENCE_MS = 40000; // the service says something every 15 seconds
const GATHER_MS = 30;

export class Stream {
  #tell;
  #views = new Map(); // a view, and behind which line its log goes on
  #attempt = null;
  #timer = 0;

  // `tell` is called with {status} and with {view, parts | lines | over}.
  constructor(tell) {
    this.#tell = tell;
  }

  // Whoever comes to a view that others watch is told all of it, too; a log goes on where the last of them is.
  watch(view, after = 0) {
    this.#views.set(view, Math.min(after, this.#views.get(view) ?? after));
    this.#restart();
  }

  drop(view) {
    if (this.#views.delete(view)) this.#restart();
  }

  // Several pages may come and go in the same moment.
  #restart() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#connect(), GATHER_MS);
  }

  async #connect() {
    this.#attempt?.abort();
    const attempt = (this.#attempt = new AbortController());
    while (this.#views.size && !attempt.signal.aborted) {
      const status = await this.#read(attempt).catch(() => "lost");
      if (attempt.signal.aborted) return;
      this.#tell({ status });
      if (status === "expired") return;
      await new Promise((done) => setTimeout(done, RETRY_MS));
    }
  }

  async #read(attempt) {
    const names = [...this.#views].map(([view, after]) => (view.startsWith("log:") ? `${view}:${after}` : view));
    const query = new URLSearchParams(names.map((name) => ["view", name]));
    const answer = await fetch(`/live?${query}`, { signal: attempt.signal, headers: { Accept: "text/event-stream" } });
    if (answer.status === 401) return "expired";
    if (!answer.ok) return "lost";
    this.#tell({ status: "open" });
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (;;) {
      const silence = setTimeout(() => reader.cancel(), SILENCE_MS);
      const { value, done } = await reader.read();
      clearTimeout(silence);
      if (done) return "lost";
      const blocks = (text + value).split("\n\n");
      text = blocks.pop();
      for (const block of blocks) this.#take(block);
    }
  }

  #take(block) {
    const data = block.split("\n").find((line) => line.startsWith("data: "));
    if (!data) return;
    const event = JSON.parse(data.slice(6));
    if (event.lines) {
      event.view = event.view.split(":").slice(0, 2).join(":");
      this.#views.set(event.view, event.lines.at(-1).number);
    }
    if (event.over) {
      event.view = event.view.split(":").slice(0, 2).join(":");
      this.#views.delete(event.view);
    }
    this.#tell(event);
  }
}
