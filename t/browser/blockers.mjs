import {readdirSync, readFileSync, statSync} from 'node:fs';
import {join} from 'node:path';
import {FiltersEngine, Request} from '@ghostery/adblocker';
import {equal, launch, ok, run, test} from './harness.mjs';

const files = folder => readdirSync(folder).flatMap(name => {
  const path = join(folder, name);
  return statSync(path).isDirectory() ? files(path) : [path];
});
const lists = files(process.env.LISTS).filter(path => /\/(thirdparties|ublock)\/.*\.txt$/.test(path) && !path.includes('badlists'));
const engine = FiltersEngine.parse(lists.map(path => readFileSync(path, 'utf8')).join('\n'), {enableCompression: false});

const token = 'A-_z09'.repeat(16);
const text = path => readFileSync(path, 'utf8');

// What a page asks for, by the kind of request that it is.
const tracking = ['impression', 'viewable', 'click', 'conversion'].map(name => `/spot/${name}?t=${token}`);
const asked = [
  ...['tag', 'tag-consent', 'tag-debug'].map(name => `build/tag/${name}.js`).map(path => ['script', path.replace('build/tag', '/spot')]),
  ['stylesheet', '/spot/slots.css'],
  ['xmlhttprequest', '/spot/serve?placement=home-top,home-side,in-article&url=https%3A%2F%2Fnews.example%2F&shown=31,41&kv.section=sport'],
  ['script', '/spot/serve?placement=home-top&format=js'],
  ['sub_frame', '/spot/serve?placement=home-top&format=html'],
  ['sub_frame', `/spot/frame?t=${token}`],
  ...tracking.flatMap(url => [['image', url], ['xmlhttprequest', url], ['other', url], ['main_frame', url]]),
  ...['status?limit=1000', 'live?campaigns=7', 'api/me', 'api/campaigns/7/why', 'api/ad-groups?campaign=7', 'api/creatives', 'api/placements/home-top', 'api/experiments', 'api/advertisers', 'api/report?by=placement'].map(url => ['xmlhttprequest', `/console/${url}`]),
  ['main_frame', '/console/'], ['script', '/console/console.js'], ['stylesheet', '/console/style.css'], ['image', '/console/icon.svg'],
  ...files('conf/demo').map(path => [/\.js$/.test(path) ? 'script' : /\.css$/.test(path) ? 'stylesheet' : /\.svg$/.test(path) ? 'image' : 'main_frame', path.replace('conf/demo', '')]),
  // Every path in our configurations and on our page of documentation.
  ...['conf/nginx.conf', 'conf/demo.conf', 'docs/web.md', 'docs/tutorial.md', 'README.md'].flatMap(path =>
    [...text(path).matchAll(/(?<![\w.:/*<])\/[a-z][\w./-]*\b/g)].map(([url]) => ['xmlhttprequest', url])),
];

test('the lists are read, and block what they are for', () => {
  ok(lists.length >= 5, `${lists.length} lists`);
  ok(engine.match(Request.fromRawDetails({type: 'script', url: 'https://news.example/ads/banner-728x90.js', sourceUrl: 'https://news.example/'})).match, 'a banner');
  ok(engine.match(Request.fromRawDetails({type: 'ping', url: 'https://other.example/spot/impression', sourceUrl: 'https://news.example/'})).match, 'a beacon to another site');
}, {bare: true});

test('no request is blocked, on the own host or on another', () => {
  const blocked = [];
  for (const [type, path] of asked) {
    for (const host of ['news.example', 'media.example']) {
      const {match, filter} = engine.match(Request.fromRawDetails({type, url: `https://${host}${path}`, sourceUrl: 'https://news.example/story.html'}));
      if (match) {
        blocked.push(`${type} ${host}${path}: ${filter}`);
      }
    }
  }
  ok(asked.length > 60, `${asked.length} addresses`);
  equal(blocked, [], 'blocked');
}, {bare: true});

// An element of each class, id and name that the console's source has.
const consoleElements = () => {
  const sources = files('admin/console/src').map(text).join('\n');
  const all = (pattern, from = sources) => [...new Set([...from.matchAll(pattern)].flatMap(([, found]) => found.split(/[^\w-]+/)).filter(name => /^[a-z][\w-]*$/.test(name)))];
  const classes = [...new Set([...all(/class="([^"]*)"/g), ...all(/\.([a-z][\w-]*)(?=[^{};]*\{)/g, text('admin/console/src/style.css'))])];
  return [...classes.map(name => `<i class="${name}">c</i>`), ...all(/\bid="([\w-]+)"/g).map(id => `<i id="${id}">c</i>`), ...all(/<([a-z]+-[a-z-]+)/g).map(name => `<${name}>c</${name}>`)];
};

test('no element is hidden', async () => {
  const browser = await launch();
  try {
    ok(consoleElements().length > 100, `${consoleElements().length} elements of the console`);
    const page = await browser.newPage();
    const html = [text('conf/demo/index.html'), ...[...text('docs/web.md').matchAll(/```html\n([^]*?)```/g)].map(([, code]) => code),
      '<a class="spot-native"><img class="spot-image"><strong class="spot-title">a</strong><span class="spot-body">b</span></a>',
      ...consoleElements(), '<i class="ad-slot">control</i><ad-slot>control</ad-slot>'].join('\n');
    await page.setContent(html.replace(/<script[^]*?<\/script>|<link[^>]*>/g, ''));
    const found = await page.evaluate(() => {
      const all = [...document.querySelectorAll('*')];
      return {classes: [...new Set(all.flatMap(one => [...one.classList]))], ids: all.map(one => one.id).filter(Boolean), hrefs: all.map(one => one.getAttribute('href')).filter(Boolean)};
    });
    const {styles} = engine.getCosmeticsFilters({url: 'https://news.example/', hostname: 'news.example', domain: 'news.example', ...found, getBaseRules: true, getRulesFromDOM: true, getRulesFromHostname: true, getInjectionRules: false, getExtendedRules: false});
    const selectors = styles.split('\n').map(line => line.replace(/\s*\{.*$/, '').replace(/,$/, '')).filter(Boolean);
    const hidden = await page.evaluate(all => all.flatMap(selector => {
      try {
        return [...document.querySelectorAll(selector)].map(node => `${selector}: ${node.outerHTML.slice(0, 100)}`);
      } catch {
        return [];
      }
    }), selectors);
    ok(['<i class', '<ad-slot'].every(what => hidden.some(one => one.includes(what))), 'what is there to be hidden');
    // Pictures of a usual size are hidden whatever their names; nothing is done about that.
    equal(hidden.filter(one => !one.includes('control') && !one.startsWith('img[width=')), [], 'hidden');
  } finally {
    await browser.close();
  }
}, {bare: true});

await run({site: false});
