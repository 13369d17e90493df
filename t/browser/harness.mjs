// Tests of pages: each has a context of its own, and fails on a message in the console.
import {mkdirSync, readFileSync, statSync, writeFileSync} from 'node:fs';
import {dirname, join} from 'node:path';
import {chromium} from 'playwright-core';

export const site = process.env.SITE;
const root = process.env.ROOT;
const log = process.env.LOG;
const deadline = 60_000;  // of a condition, on a machine with other work

const tests = [];
export const test = (name, body, options = {}) => tests.push({name, body, options});

export const equal = (is, expected, what) => {
  const [a, b] = [is, expected].map(value => JSON.stringify(value));
  if (a !== b) {
    throw new Error(`${what}: is ${a}, not ${b}`);
  }
};
export const ok = (is, what) => {
  if (!is) {
    throw new Error(what);
  }
};

/** Waits until the condition holds, or fails. */
export const until = async (what, condition) => {
  const end = Date.now() + deadline;
  for (;;) {
    const value = await condition();
    if (value) {
      return value;
    }
    ok(Date.now() < end, `waited for: ${what}`);
    await new Promise(done => setTimeout(done, 10));
  }
};

export const launch = (args = [], ignore = []) => chromium.launch({
  executablePath: process.env.BROWSER,
  ignoreDefaultArgs: ignore,
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-component-update', '--disable-sync', ...args],
});

/** Writes a page below the root of nginx; its address. */
export const write = (path, html) => {
  mkdirSync(dirname(join(root, path)), {recursive: true});
  writeFileSync(join(root, path), html);
  return `${site}/${path}`;
};

export const spot = (placement, more = '', inside = '') => `<page-spot placement="${placement}"${more && ' ' + more}>${inside}</page-spot>`;

export const document = (body, {head = '', script = '<script async src="/spot/tag.js"></script>'} = {}) => `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>A page</title><link rel="icon" href="/icon.svg"><link rel="stylesheet" href="/site.css"><link rel="stylesheet" href="/spot/slots.css">
${head}${script}</head><body><main><h1>A page</h1>${body}</main></body></html>`;

/** Lines of nginx's log since a size: {method, path, query, status, purpose}. */
export const logged = (from = 0) => readFileSync(log, 'utf8').slice(from).trim().split('\n').filter(Boolean).map(line => {
  const [method, path, args, status, purpose] = line.split(' ');
  return {method, path, query: new URLSearchParams(args), status: Number(status), purpose};
});
export const logSize = () => statSync(log).size;

export const counts = async group => {
  const status = await (await fetch(`${site}/status?ad_group=${group}`)).json();
  const {serves, impressions, clicks} = status.ad_groups[0] ?? {serves: 0, impressions: 0, clicks: 0};
  return {serves, impressions, clicks};
};

let pages = 0;

/** A page of a test, and what it asks of nginx. */
export class Tab {
  constructor(page, messages) {
    this.page = page;
    this.requests = [];
    page.on('request', request => {
      const url = new URL(request.url());
      if (url.pathname.startsWith('/spot/') && !/\.(js|css)$/.test(url.pathname)) {
        this.requests.push({method: request.method(), name: url.pathname.slice(6), query: url.searchParams});
      }
    });
    this.modules = [];
    page.on('requestfinished', request => this.modules.push(request.url()));
    page.on('console', message => messages.push(`${message.type()}: ${message.text()}`));
    page.on('pageerror', error => messages.push(`error: ${error.message}`));
  }

  /** Loads a page with this body; the clock stands still where a test has asked for that. */
  async open(body, {folder = 'pages', ...options} = {}) {
    const url = write(`${folder}/${++pages}.html`, document(body, options));
    await this.page.goto(url);
    return url;
  }

  async stopClock() {
    await this.page.clock.install({time: new Date('2026-11-16T12:00:00Z')});
    await this.page.clock.pauseAt(new Date('2026-11-16T12:00:01Z'));
  }

  tick(ms) {
    return this.page.clock.runFor(ms);
  }

  /** Resolves when observers have been told of the present layout, and what that starts has begun. */
  async settle() {
    for (let i = 0; i < 3; i++) {
      await this.page.evaluate(() => new Promise(done => new IntersectionObserver((_, observer) => {
        observer.disconnect();
        done();
      }).observe(document.documentElement)));
    }
    await this.page.evaluate(() => fetch('/barrier.txt').then(response => response.text()));
  }

  named(name) {
    return this.requests.filter(request => request.name === name);
  }

  count(name) {
    return this.named(name).length;
  }

  /** The placements of each request for ads. */
  asked() {
    return this.named('serve').map(({query}) => query.get('placement'));
  }

  events() {
    return this.page.evaluate(() => window.seenEvents);
  }

  /** Waits until the spot of the placement shows an ad. */
  async filled(placement, n = 1) {
    await this.page.waitForFunction(([name, times]) => window.seenEvents.filter(e => e === `fill ${name}`).length >= times, [placement, n], {polling: 20});
  }

  async emptied(placement, n = 1) {
    await this.page.waitForFunction(([name, times]) => window.seenEvents.filter(e => e === `empty ${name}`).length >= times, [placement, n], {polling: 20});
  }

  /** Waits until a module that is loaded on demand has come and was run. */
  async waitModule(name) {
    await until(`the module ${name}`, () => this.modules.some(url => url.endsWith(`-${name}.js`)));
    await this.page.evaluate(module => import(module), this.modules.find(url => url.endsWith(`-${name}.js`)));
    await this.settle();
  }

  waitFor(name, n = 1) {
    return until(`${n} × ${name}`, () => this.count(name) >= n);
  }
}

// Tests see what the page would: the events of its spots.
const listen = () => {
  window.seenEvents = [];
  window.shifts = 0;
  for (const name of ['fill', 'empty', 'view', 'click']) {
    document.addEventListener(name, event => {
      if (event instanceof CustomEvent) {
        window.seenEvents.push(`${name} ${event.detail.placement}`);
      }
    });
  }
  new PerformanceObserver(list => {
    for (const entry of list.getEntries()) {
      window.shifts += entry.value;
    }
  }).observe({type: 'layout-shift', buffered: true});
};

/** Runs a body with a page of its own in the browser; returns what the console had. */
export const inPage = async (browser, body, options = {}) => {
  const context = await browser.newContext({viewport: {width: 1200, height: 800}, ...options.context});
  context.setDefaultTimeout(deadline);
  const messages = [];
  try {
    if (options.listen !== false) {
      await context.addInitScript(listen);
    }
    const tab = async () => new Tab(await context.newPage(), messages);
    try {
      await body(await tab(), {browser, context, tab});
    } catch (error) {
      for (const [i, page] of (process.env.SHOTS ? context.pages() : []).entries()) {
        await page.screenshot({path: `${process.env.SHOTS}/failed-${i}.png`});
      }
      throw error;
    }
    // What the context adds to pages it adds to frames as well, where no script runs.
    const allowed = [...options.console ?? [], ...options.listen === false ? [] : [/^error: Blocked script execution in '[^']*\/spot\/frame\?/]];
    equal(messages.filter(message => !allowed.some(pattern => pattern.test(message))), [], 'messages in the console');
  } finally {
    await context.close();
  }
};

export const run = async ({site: served = true} = {}) => {
  const only = process.env.ONLY;
  const chosen = tests.filter(({name}) => !only || name.includes(only));
  let browser;
  if (served) {
    write('barrier.txt', '');
    write('restored.txt', '');
    write('icon.svg', '<svg xmlns="http://www.w3.org/2000/svg" width="16" height="16"/>');
    write('site.css', 'body, h1 { margin: 0; } h1 { height: 40px; }\n');
    write('landing.html', '<!doctype html><html lang="en"><title>Landing</title><link rel="icon" href="/icon.svg"><h1>Landed</h1></html>');
    browser = await launch();
  }
  let number = 0;
  let failed = 0;
  for (const {name, body, options} of chosen) {
    const begin = Date.now();
    let error;
    try {
      await (options.bare ? body() : inPage(browser, body, options));
    } catch (caught) {
      error = caught;
      failed++;
    }
    console.log(`${error ? 'not ok' : 'ok'} ${++number} - ${name}`);
    if (error) {
      console.log(String(error.stack).split('\n').map(line => `# ${line}`).join('\n'));
    }
    if (process.env.TIMES) {
      console.log(`# ${Date.now() - begin} ms`);
    }
  }
  await browser?.close();
  console.log(`1..${number}`);
  process.exitCode = failed ? 1 : 0;
};
