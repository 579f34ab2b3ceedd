// Requests to the server: JSON in and out, and the events of searches.

export class ServerError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

async function failed(response) {
  let message = `the server answered with status ${response.status}`;
  try {
    message = (await response.json()).error ?? message;
  } catch { /* no JSON: the status says enough */ }
  return new ServerError(message, response.status);
}

// Throws the reason why an answer is missing or incomplete; status 0 is a lost connection.
function lost(error) {
  if (error?.name === "AbortError") throw error;
  throw new ServerError("the server cannot be reached; is azero web still running?", 0);
}

async function request(path, options) {
  const response = await fetch(path, options).catch(lost);
  if (!response.ok) throw await failed(response);
  return response;
}

export async function get(path) {
  return (await request(path)).json().catch(lost);
}

export async function post(path, fields, signal) {
  return (await request(path, { method: "POST", body: JSON.stringify(fields), signal })).json().catch(lost);
}

export async function upload(path, file) {
  return (await request(path, { method: "POST", body: file })).json().catch(lost);
}

// Calls `on(kind, data)` for every event of a search, until it ends or `signal` is aborted.
export async function events(path, fields, signal, on) {
  const response = await request(path, { method: "POST", body: JSON.stringify(fields), signal });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read().catch(lost);
    if (done) lost();
    text += value;
    const parts = text.split("\n\n");
    text = parts.pop();
    for (const part of parts) {
      const kind = /^event: (.*)$/m.exec(part)[1];
      if (kind === "end") return;
      on(kind, JSON.parse(/^data: (.*)$/m.exec(part)[1]));
    }
  }
}
