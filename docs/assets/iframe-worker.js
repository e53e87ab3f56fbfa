// Search without a server: a browser starts no worker from a file. Its script runs in a hidden frame instead, which hears and answers as a worker does.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(script) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inner = frame.contentWindow;
      inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      inner.importScripts = async (...scripts) => { for (const one of scripts) await this.load(inner, one); };
      this.frame = frame;
      this.loaded = this.load(inner, script);
    }
    load(inner, script) {
      return new Promise((done, failed) => {
        const element = Object.assign(inner.document.createElement("script"), { src: script, onload: done, onerror: failed });
        inner.document.body.append(element);
      });
    }
    postMessage(data) {
      this.loaded.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() { this.frame.remove(); }
    set onmessage(heard) { this.addEventListener("message", heard); }
  };
}
