// The catalog as the page reads and edits it: a file that nginx's dav module writes and the
// ads module watches.
const file = '/catalog.json';

// Names of what an answer and the status give ids of.
export function names(catalog) {
  const groups = new Map();
  const creatives = new Map();
  for (const campaign of catalog.campaigns ?? []) {
    for (const group of campaign.ad_groups ?? []) {
      groups.set(group.id, { ...group, campaign });
      for (const creative of group.creatives ?? []) {
        creatives.set(creative.id, creative);
      }
    }
  }
  return {
    groups,
    creatives,
    placements: new Map((catalog.placements ?? []).map(p => [p.id, p])),
    experiments: new Map((catalog.experiments ?? []).map(e => [e.id, e])),
    campaigns: new Map((catalog.campaigns ?? []).map(c => [c.id, c])),
  };
}

// JSON as people write it: what fits into a line stays in one, and plain members share lines.
export function pretty(value, indent = '', room = 96) {
  if (value === null || typeof value !== 'object') {
    return JSON.stringify(value);
  }
  const list = Array.isArray(value);
  const [open, close] = list ? '[]' : '{}';
  const parts = Object.entries(value).map(([key, v]) => [list ? '' : JSON.stringify(key) + ': ', v]);
  const line = open + parts.map(([key, v]) => key + pretty(v, '', Infinity)).join(', ') + close;
  if (indent.length + line.length <= room) {
    return line;
  }
  const inner = indent + '  ';
  const lines = [];
  let shared = false;  // whether the last line is one of plain members
  for (const [key, v] of parts) {
    const text = key + pretty(v, inner, room);
    const plain = !list && (v === null || typeof v !== 'object');
    if (plain && shared && inner.length + lines.at(-1).length + text.length + 2 < room) {
      lines.push(lines.pop() + ', ' + text);
    } else {
      lines.push(text);
    }
    shared = plain;
  }
  return open + '\n' + lines.map(text => inner + text).join(',\n') + '\n' + indent + close;
}

export async function load(url = file) {
  const response = await fetch(url, { cache: 'no-store' });
  if (!response.ok) {
    throw new Error(`${url} answered ${response.status}`);
  }
  return response.text();
}

const pause = ms => new Promise(done => setTimeout(done, ms));

// Where a message of the module points to in the text, as [from, to]; undefined if it is not to be seen.
export function locate(text, message) {
  const at = /line (\d+), column (\d+)/.exec(message);
  if (at) {
    const lines = text.split('\n').slice(0, at[1] - 1);
    const from = lines.reduce((sum, line) => sum + line.length + 1, 0) + Number(at[2]) - 1;
    return [from, from + 1];
  }
  const [, key, value] = /^\$[^:]*?([\w-]+)(?:\[\d+\])?: .*, not (".*?"|[\w.-]+)/.exec(message) ?? [];
  for (const part of [`"${key}": ${value}`, value]) {
    const from = part ? text.indexOf(part) : -1;
    if (from >= 0) {
      return [from, from + part.length];
    }
  }
  return undefined;
}

async function put(text) {
  const response = await fetch(file, { method: 'PUT', body: text });
  if (!response.ok) {
    throw new Error(`The file was not written: nginx answered ${response.status}.`);
  }
}

// Writes the file and waits for the module's verdict: { generation, seconds } or { error }.
// After an error the file is `good` again, so that nginx can start from it tomorrow.
export async function save(text, good, status) {
  // The mistake before this one may still be in the status.
  const before = await until(status, 3000, now => !now.error);
  const start = performance.now();
  await put(text);
  const now = await until(status, 10000, (now, waited) => now.generation !== before.generation ||
    (before.error ? now.error !== before.error || waited > 3000 : now.error));
  if (now.error) {
    await put(good);
    return { error: now.error };
  }
  return { generation: now.generation, seconds: (performance.now() - start) / 1000 };
}

// What the status says of the catalog, once `done` or after so many milliseconds.
async function until(status, most, done) {
  const start = performance.now();
  for (;;) {
    const now = (await status()).catalog;
    const waited = performance.now() - start;
    if (done(now, waited) || waited > most) {
      return now;
    }
    await new Promise(next => setTimeout(next, 150));
  }
}
