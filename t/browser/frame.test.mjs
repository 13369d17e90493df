// Ads in frames: HTML creatives by their URL.
import {counts, document, equal, logged, logSize, ok, site, spot, test, until, write} from './harness.mjs';

const frameOf = async (tab, placement) => {
  const handle = await tab.page.waitForFunction(name => window.document.querySelector(`page-spot[placement=${name}]`)?.shadowRoot.querySelector('iframe'), placement);
  return (await handle.asElement().contentFrame());
};

test('an HTML ad stands in a frame by its URL, counts when it is seen, and looks as it was made', async tab => {
  const before = await counts(8);
  await tab.open(spot('markup'));
  await tab.filled('markup');
  await tab.waitFor('viewable');
  const frame = await frameOf(tab, 'markup');
  equal(await frame.evaluate(() => {
    const p = document.querySelector('p');
    const {x, y, width, height} = p.getBoundingClientRect();
    return [origin, getComputedStyle(p).backgroundColor, x, y, width, height, document.documentElement.scrollHeight, document.querySelector('img').naturalWidth];
  }), ['null', 'rgb(204, 255, 238)', 0, 0, 300, 250, 250, 60], 'its origin, its style, where it stands, and a picture of this host over http');
  const attributes = await (await frame.frameElement()).evaluate(node => [node.getAttribute('sandbox'), node.referrerPolicy, node.title.startsWith('Advertisement'), node.hasAttribute('srcdoc')]);
  equal(attributes, ['allow-popups allow-popups-to-escape-sandbox', 'no-referrer', true, false], 'the frame');
  await until('the impression is counted', async () => (await counts(8)).impressions === before.impressions + 1);
});

test('a frame is not a message in the console', async tab => {
  const size = logSize();
  await tab.open(spot('markup'));
  await until('a view', () => logged(size).some(({path}) => path === '/spot/viewable'));
}, {listen: false});

test('the Tab key goes through a frame and is no click', async tab => {
  await tab.open(`<a href="#a">Before</a>${spot('markup')}<a href="#b">After</a>`);
  await tab.waitFor('impression');
  for (let i = 0; i < 4; i++) {
    await tab.page.keyboard.press('Tab');
  }
  await tab.settle();
  equal((await tab.events()).filter(event => event.startsWith('click')), [], 'clicks');
});

test('a click into a frame counts once, lands on the target, and the page learns of it', async (tab, {context}) => {
  const before = await counts(8);
  await tab.open(spot('markup'));
  await tab.waitFor('impression');
  const frame = await frameOf(tab, 'markup');
  const link = await frame.locator('a').getAttribute('href');
  // The same as without a frame: however it was made, a click counts once.
  equal(new URL(link, site).href, await tab.page.evaluate(() => new URL(document.querySelector('page-spot').ad.click_url, location.href).href), 'the URL of the click');
  const [landing] = await Promise.all([context.waitForEvent('page'), frame.locator('p').click()]);
  await landing.waitForURL(/landing\.html\?ad=8$/);
  equal(await landing.evaluate(() => [window.opener, origin === 'null']), [null, false], 'the target is out of the sandbox');
  await tab.page.waitForFunction(() => window.seenEvents.includes('click markup'), undefined, {polling: 20});
  await landing.goto(new URL(link, site).href);
  equal((await counts(8)).clicks - before.clicks, 1, 'clicks');
});

test('markup with links of its own: each of them is counted', async (tab, {context}) => {
  const before = await counts(14);
  await tab.open(spot('links'));
  await tab.waitFor('impression');
  const frame = await frameOf(tab, 'links');
  equal(await frame.locator('a').count(), 2, 'links, and none around them');
  const [landing] = await Promise.all([context.waitForEvent('page'), frame.getByText('Two').click()]);
  await landing.waitForURL(/landing\.html\?ad=14$/);
  equal((await counts(14)).clicks - before.clicks, 1, 'clicks');
});

test('no script of an HTML ad runs, in the frame or opened outside of it', async tab => {
  const size = logSize();
  await tab.open(spot('script'));
  await tab.waitFor('impression');
  const url = (await frameOf(tab, 'script')).url();
  await tab.page.goto(url);
  equal(await tab.page.evaluate(() => [origin, document.title, document.body.textContent.includes('Script')]), ['null', 'Advertisement', true], 'opened by itself');
  await tab.page.goto(write('pages/end.html', document('', {script: ''})));
  equal(logged(size).filter(({path}) => path.startsWith('/stolen')), [], 'requests of its scripts');
}, {console: [/Blocked script execution/, /Content Security Policy/]});

test('a frame whose token is not good is empty', async tab => {
  await tab.page.goto(write('pages/bad.html', document(`<iframe title="a" src="/spot/frame?t=x" width="300" height="250"></iframe>`, {script: ''})));
  const [, frame] = tab.page.frames();
  equal(await frame.evaluate(() => [document.title, document.body.childNodes.length]), ['t must be a token of 96 characters', 0], 'what it has');
}, {console: [/400/]});

test('pages of other origins show frames where ads_cors allows it', async tab => {
  await tab.open(spot('markup'));
  await tab.waitFor('impression');
  const url = (await frameOf(tab, 'markup')).url();
  const embed = write('pages/embed.html', document(`<iframe title="a" src="${url}" width="300" height="250"></iframe>`, {script: ''}));
  const text = async page => {
    await tab.page.goto(page);
    return tab.page.frames()[1].evaluate(() => document.body.textContent.includes('Markup')).catch(() => false);
  };
  equal(await text(embed.replace('127.0.0.1', 'localhost')), true, 'an origin that is named');
  equal(await text(embed.replace('127.0.0.1', 'other.localhost')), false, 'one that is not');
}, {console: [/frame-ancestors|Framing/]});

test('a tag: its scripts run on a host of their own, without an origin, and its click is counted', async (tab, {context}) => {
  const before = await counts(16);
  await tab.open(spot('partner'));
  await tab.waitFor('viewable');
  const frame = await frameOf(tab, 'partner');
  equal([new URL(frame.url()).hostname, (await (await frame.frameElement()).getAttribute('sandbox'))], ['frames.localhost', 'allow-scripts allow-popups allow-popups-to-escape-sandbox'], 'the frame');
  equal(await frame.evaluate(() => document.body.lastChild.textContent.trim()), 'null not reached', 'what its script finds');
  const [landing] = await Promise.all([context.waitForEvent('page'), frame.locator('#link').click()]);
  await landing.waitForURL(/landing\.html\?ad=16$/);
  equal((await counts(16)).clicks - before.clicks, 1, 'clicks');
  await tab.page.goto(frame.url().replace('frames.localhost', '127.0.0.1'));
  equal(await tab.page.evaluate(() => [document.title, document.body.childNodes.length]), ['this host does not show tags', 0], 'on the host of the page');
}, {console: [/404/]});
