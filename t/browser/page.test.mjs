// What an ad does to the page around it.
import {existsSync, readFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {gzipSync} from 'node:zlib';
import {equal, ok, spot, test, until} from './harness.mjs';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const rects = tab => tab.page.evaluate(() => [...document.querySelectorAll('page-spot')].map(one => {
  const {width, height} = one.getBoundingClientRect();
  return [one.placement, width, height];
}));
const shifts = tab => tab.page.evaluate(() => window.shifts);
const shot = (tab, name) => process.env.SHOTS ? tab.page.screenshot({path: `${process.env.SHOTS}/${name}.png`}) : undefined;

test('the script is at most 4 kB, compressed as nginx does', () => {
  const size = gzipSync(readFileSync('build/tag/tag.js'), {level: 1}).length;
  ok(size <= 4096, `${size} bytes`);
}, {bare: true});

test('the package has its types and no more than its files', () => {
  const {exports: {'.': main}} = JSON.parse(readFileSync('build/tag/package/package.json'));
  ok(/export \{ PageSpot, type SpotDetail \}/.test(readFileSync(`build/tag/package/${main.types}`, 'utf8')), 'types');
  equal([...readFileSync(`build/tag/package/${main.default}`, 'utf8').matchAll(/import\("(.*?)"\)/g)].map(([, path]) => path).filter(path => !existsSync(`build/tag/package/${path}`)), [], 'imports of nothing');
}, {bare: true});

test('the name of the element stands in the script once, for nginx to replace', () => {
  equal([...readFileSync('build/tag/tag.js', 'utf8').matchAll(/page-spot/g)].length, 1, 'times');
}, {bare: true});

const article = `<div class="text">${'<p>Words of an article, which a reader reads.</p>'.repeat(4)}</div>`;
const template = '<template id="card"><article><img data-field="image" alt=""><h2><a data-field="title"></a></h2><p data-field="body"></p><p data-field="price"></p></article></template>';

test('nothing on the page moves: full, empty, refreshed, broken', async tab => {
  await tab.open(`${spot('top')}${article}${spot('empty')}${article}${spot('side')}${spot('markup')}${spot('text')}<div style="height:60px"></div>${spot('broken', 'loading="eager"')}${article}`);
  await Promise.all([tab.filled('top'), tab.filled('side'), tab.filled('markup'), tab.emptied('empty'), tab.emptied('broken')]);
  await tab.waitFor('impression', 2);
  await tab.page.evaluate(() => window.spots.refresh());
  await Promise.all([tab.filled('top', 2), tab.filled('side', 2), tab.emptied('empty', 2)]);
  await tab.settle();
  equal(await shifts(tab), 0, 'layout shift');
  await shot(tab, 'page');
}, {console: [/404/]});

test('the metric of the test sees a shift', async tab => {
  await tab.open(`${spot('text')}${article}`, {head: ''});
  await tab.filled('text');
  await until('a shift', async () => await shifts(tab) > 0);
});

test('an empty spot keeps its space in view, and gives it back below', async tab => {
  await tab.open(`${spot('empty')}<div style="height:600px"></div>${spot('empty')}<p>After it</p>`);
  await tab.emptied('empty', 2);
  equal(await rects(tab), [['empty', 300, 250], ['empty', 0, 0]], 'sizes');
  equal(await shifts(tab), 0, 'layout shift');
});

test('what the page has for an empty spot is shown instead', async tab => {
  await tab.open(`<div style="height:850px"></div>${spot('empty', '', '<a href="/subscribe.html">Subscribe</a>')}`);
  await tab.emptied('empty');
  ok(await tab.page.locator('page-spot a').isVisible(), 'the fallback is seen');
});

test('an ad takes the place of what is there for an empty spot', async tab => {
  await tab.open(spot('side', '', '<a href="/subscribe.html">Subscribe</a>'));
  await tab.filled('side');
  ok(await tab.page.locator('page-spot img').isVisible(), 'the ad is seen');
  ok(!await tab.page.getByText('Subscribe').isVisible(), 'the fallback is not');
});

test('an ad is no wider than its column', async tab => {
  await tab.open(`<div style="width:320px">${spot('top')}</div>`);
  await tab.filled('top');
  equal(await tab.page.evaluate(() => document.querySelector('page-spot').shadowRoot.querySelector('img').getBoundingClientRect().width), 320, 'its width');
  equal(await tab.page.evaluate(() => document.documentElement.scrollWidth), 1200, 'the width of the page');
});

test('native ads stand in the page, in its own template or in ours, and are text', async tab => {
  await tab.open(`${template}${spot('text', 'template="card"')}${spot('text', '', '<template><b data-field="title"></b></template>')}`, {head: '<style>page-spot article { color: rgb(1, 2, 3); }</style>'});
  await tab.filled('text', 1);
  equal(await tab.page.evaluate(() => {
    const card = document.querySelector('page-spot article');
    const link = card.querySelector('a');
    return [getComputedStyle(card).color, link.textContent, new URL(link.href).pathname, link.target, link.rel, card.querySelector('img').getAttribute('src'), card.querySelectorAll('p').length];
  }), ['rgb(1, 2, 3)', '<b>Winter</b>', '/spot/click', '_blank', 'noopener sponsored', new URL('/picture-text.svg', tab.page.url()).href, 1], 'the card');
  await shot(tab, 'native');
});

test('a native ad without a template', async tab => {
  await tab.open(spot('text'));
  await tab.filled('text');
  equal(await tab.page.evaluate(() => [...document.querySelectorAll('page-spot a.spot-native > *')].map(node => [node.localName, node.className, node.textContent])),
    [['img', 'spot-image', ''], ['strong', 'spot-title', '<b>Winter</b>'], ['span', 'spot-body', 'Warm & dry']], 'its parts');
  await tab.waitFor('impression');
});

const strict = {
  folder: 'strict',
  head: '',
};

test('a strict policy: own scripts and styles only, Trusted Types', async tab => {
  await tab.stopClock();
  await tab.open(`${spot('top')}${spot('text', 'template="card"')}${spot('side', 'refresh="30"')}${spot('markup')}${spot('empty')}${template}`, {...strict, script: '<script async src="/spot/tag.js" data-consent="wait 1"></script>'});
  equal(await tab.page.evaluate(() => { try { document.body.innerHTML = 'x'; } catch (error) { return error.name; } }), 'TypeError', 'the policy holds');
  await until('the limit of the wait', async () => { await tab.tick(1000); return tab.count('serve'); });
  await Promise.all([tab.filled('top'), tab.filled('text'), tab.filled('side'), tab.filled('markup')]);
  await tab.settle();
  await tab.tick(1000);
  await tab.waitFor('viewable', 4);
  await tab.page.evaluate(() => window.spots.debug());
  ok(await tab.page.getByRole('heading', {name: 'Spots on this page'}).isVisible(), 'the panel');
}, {console: [/This document requires 'TrustedHTML'/]});

test('consent="wait": a manager with an answer ends the wait', async tab => {
  await tab.stopClock();
  await tab.open(spot('top'), {script: `<script>
    window.__tcfapi = (command, version, callback) => { window.listener = callback; callback({eventStatus: 'cmpuishown'}, true); };
  </script><script async src="/spot/tag.js" data-consent="wait 60"></script>`});
  await tab.page.waitForFunction(() => window.listener, undefined, {polling: 20});
  await tab.tick(59_999);
  await tab.settle();
  equal(tab.count('serve'), 0, 'requests while the visitor has not answered');
  await tab.page.evaluate(() => window.listener({eventStatus: 'useractioncomplete'}, true));
  await tab.filled('top');
  await tab.page.evaluate(() => window.spots.refresh());
  await tab.filled('top', 2);
});

test('consent="wait": a GPP manager that comes later', async tab => {
  await tab.stopClock();
  await tab.open(spot('top'), {script: '<script async src="/spot/tag.js" data-consent="wait 60"></script>'});
  await tab.page.evaluate(() => {
    window.__gpp = (command, callback) => {
      window.asked = [...window.asked ?? [], command];
      window.listener = callback;
      if (command === 'ping') {
        callback({signalStatus: 'not ready'}, true);
      }
    };
  });
  await until('that it is found', async () => { await tab.tick(50); return await tab.page.evaluate(() => window.asked); });
  await tab.settle();
  equal(tab.count('serve'), 0, 'requests before it is ready');
  await tab.page.evaluate(() => window.listener({eventName: 'signalStatus', pingData: {signalStatus: 'ready'}}, true));
  await tab.filled('top');
});

test('consent="wait": without a manager the limit ends the wait', async tab => {
  await tab.stopClock();
  await tab.open(spot('top'), {script: '<script async src="/spot/tag.js" data-consent="wait"></script>'});
  await tab.page.waitForFunction(() => window.seenEvents, undefined, {polling: 20});
  await tab.waitModule('consent');
  await tab.tick(2999);
  await tab.settle();
  equal(tab.count('serve'), 0, 'requests after 2.999 s');
  await tab.tick(1);
  await tab.filled('top');
});

test('the debug panel: what was asked, won and refused, and why', async tab => {
  await tab.open(`${spot('section')}${spot('empty')}`);
  await tab.filled('section');
  await tab.page.evaluate(() => window.spots.debug());
  const panel = tab.page.getByRole('region', {name: 'Spots on this page'});
  equal(await panel.getByRole('listitem').allInnerTexts(), ['section: campaign 1, ad group 13, creative 131 (image)', 'empty: no ad'], 'what was won');
  await panel.getByRole('button', {name: 'Ask again'}).click();
  await tab.filled('section', 2);
  await panel.getByText('ad group 12: key').waitFor();
  await shot(tab, 'debug');
  await check(tab);
  await panel.getByRole('button', {name: 'Close'}).click();
  equal(await panel.count(), 0, 'panels');
});

const check = async tab => {
  const {violations, incomplete} = await tab.page.evaluate(`${axe}; axe.run(document, {resultTypes: ['violations', 'incomplete']})`);
  equal(violations.map(({id, nodes}) => `${id}: ${nodes.map(node => node.html).join(' ')}`), [], 'violations');
  // No script runs in the frames of ads, so that axe does not get there.
  equal(incomplete.map(({id}) => id).filter(id => id !== 'color-contrast' && id !== 'frame-tested'), [], 'what axe cannot tell');
};

test('accessible: axe finds nothing, an ad is a group called Advertisement, and focus passes through', async (tab, {context}) => {
  await tab.open(`<a href="#a">Before</a>${spot('top')}${spot('side')}${spot('text', 'template="card"')}${template}${spot('markup')}${spot('empty')}<a href="#b">After</a>`);
  await Promise.all([tab.filled('top'), tab.filled('side'), tab.filled('text'), tab.filled('markup'), tab.emptied('empty')]);
  await check(tab);
  const session = await context.newCDPSession(tab.page);
  const {nodes} = await session.send('Accessibility.getFullAXTree');
  equal(nodes.filter(node => node.role?.value === 'group').map(node => node.name.value), ['Advertisement', 'Advertisement', 'Advertisement', 'Advertisement'], 'groups');
  const stops = [];
  for (let i = 0; i < 7; i++) {
    await tab.page.keyboard.press('Tab');
    stops.push(await tab.page.evaluate(() => document.activeElement.getAttribute('placement') ?? document.activeElement.textContent));
  }
  equal(stops.slice(0, 6), ['Before', 'top', 'side', '<b>Winter</b>', 'markup', 'After'], 'stops of the Tab key');
});

test('the element and its label have the names that the page wants', async (tab, {context}) => {
  await tab.open('<my-place placement="top"></my-place>', {script: '<script async src="/spot/tag.js" data-element="my-place" data-label="Anzeige"></script>'});
  await tab.filled('top');
  const {nodes} = await (await context.newCDPSession(tab.page)).send('Accessibility.getFullAXTree');
  equal(nodes.filter(node => node.role?.value === 'group').map(node => node.name.value), ['Anzeige'], 'groups');
});

test('the script twice is the script once', async tab => {
  await tab.open(spot('top'), {script: '<script async src="/spot/tag.js"></script><script async src="/spot/tag.js"></script>'});
  await tab.waitFor('impression');
  await tab.settle();
  equal(tab.requests.map(({name}) => name), ['serve', 'impression'], 'requests');
});

test('the module, as a bundler finds it', async tab => {
  await tab.open(spot('top'), {script: `<script type="module">
    import {PageSpot, debug, start} from '/spot/package/index.js';
    start({base: '/spot/', consent: 'wait 0.001'});
    window.type = PageSpot;
    window.panel = debug;
    const spot = new PageSpot();
    spot.setAttribute('placement', 'side');
    document.querySelector('main').append(spot);
  </script>`});
  await tab.waitFor('viewable', 2);
  equal(await tab.page.evaluate(() => document.querySelector('page-spot') instanceof window.type), true, 'the class');
  await tab.page.evaluate(() => window.panel());
  ok(await tab.page.getByRole('heading', {name: 'Spots on this page'}).isVisible(), 'the panel');
});

const inserted = (placement, creative, pixel = '', width = 300, height = 50, share = 0.5, seconds = 1) => `<page-spot data-inserted="00ff" data-type="image" data-width="${width}" data-height="${height}" data-creative="${creative}" data-viewable-share="${share}" data-viewable-seconds="${seconds}" data-impression="/spot/impression?t=adopted-${placement}" data-viewable="/spot/viewable?t=adopted-${placement}" data-click="/spot/click?t=x" placement="${placement}"><a href="/spot/click?t=x" target="_blank"><img src="/picture-${placement}.svg" width="${width}" height="${height}" alt="Ad"></a>${pixel}</page-spot>`;

test('what nginx has put into the page is measured, and nothing is asked for', async tab => {
  await tab.stopClock();
  await tab.page.route('**/spot/{impression,viewable}?t=adopted*', route => route.fulfill({status: 204}));
  await tab.open(`${inserted('first', 211)}<page-spot data-inserted="" placement="top">Nothing</page-spot><div style="height:3000px"></div>${spot('second')}`);
  await tab.waitFor('impression');
  await tab.settle();
  await tab.tick(1000);
  await tab.waitFor('viewable');
  equal(tab.requests.map(({method, name, query}) => `${method} ${name} ${query.get('t')}`), ['POST impression adopted-first', 'POST viewable adopted-first'], 'requests');
  await tab.page.evaluate(() => scrollTo(0, 3000));
  await tab.filled('second');
  equal(tab.named('serve')[0].query.get('shown'), '211', 'what a later request tells of it');
  await tab.page.evaluate(() => { scrollTo(0, 0); document.querySelector('[placement=first]').refresh(); });
  await tab.filled('first');
  equal(await tab.page.locator('[placement=first] img').evaluateAll(images => images.filter(image => image.checkVisibility()).length), 1, 'pictures that are seen');
});

test('a large ad that was put in is viewable with 30 % of it in view', async tab => {
  await tab.stopClock();
  await tab.page.route('**/spot/{impression,viewable}?t=adopted*', route => route.fulfill({status: 204}));
  await tab.open(`<div style="height:680px"></div>${inserted('large', 41, '', 970, 250, 0.3)}`);
  await tab.waitFor('impression');
  await tab.settle();
  equal(await tab.page.evaluate(() => { const {top, height} = document.querySelector('page-spot img').getBoundingClientRect(); return (innerHeight - top) / height; }), 0.32, 'the share in view');
  await tab.tick(1000);
  await tab.waitFor('viewable');
});

test('an ad that was put in is viewable by the terms of its placement', async tab => {
  await tab.stopClock();
  await tab.page.route('**/spot/{impression,viewable}?t=adopted*', route => route.fulfill({status: 204}));
  await tab.open(inserted('first', 211, '', 300, 50, 1, 3));
  await tab.waitFor('impression');
  await tab.settle();
  await tab.tick(2999);
  await tab.settle();
  equal(tab.count('viewable'), 0, 'views after 2999 ms');
  await tab.tick(1);
  await tab.waitFor('viewable');
});

test('what was put in with its pixel is not counted by the tag as well', async tab => {
  await tab.page.route('**/spot/{impression,viewable}?t=adopted*', route => route.fulfill({status: 204}));
  await tab.open(inserted('first', 211, '<img src="/spot/impression?t=adopted-pixel" width="1" height="1" alt="" hidden>'));
  await tab.waitFor('viewable');
  equal(tab.requests.map(({method, name, query}) => `${method} ${name} ${query.get('t')}`), ['GET impression adopted-pixel', 'POST viewable adopted-first'], 'requests');
});
