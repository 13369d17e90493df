// What counts as an impression, a view and a click, and when.
import {counts, equal, logged, logSize, spot, test, until} from './harness.mjs';

const far = '<div style="height:3000px"></div>';
const scrollTo = (tab, y) => tab.page.evaluate(to => scrollTo(0, to), y);

test('an ad in view: an impression, and a view after one second, not before', async tab => {
  const before = await counts(1);
  await tab.stopClock();
  await tab.open(spot('top'));
  await tab.filled('top');
  await tab.waitFor('impression');
  await tab.settle();
  equal(tab.count('viewable'), 0, 'views at once');
  await tab.tick(999);
  await tab.settle();
  equal(tab.count('viewable'), 0, 'views after 999 ms');
  await tab.tick(1);
  await tab.waitFor('viewable');
  await tab.tick(10_000);
  await tab.settle();
  equal(tab.requests.map(({method, name}) => `${method} ${name}`), ['GET serve', 'POST impression', 'POST viewable'], 'requests');
  equal(await tab.events(), ['fill top', 'view top'], 'events');
  const after = await counts(1);
  equal([after.serves - before.serves, after.impressions - before.impressions], [1, 1], 'counted');
});

test('an ad near the view is loaded, and counts when one pixel of it is seen', async tab => {
  await tab.stopClock();
  await tab.open(`<div style="height:900px"></div>${spot('side')}${far}`);
  await tab.filled('side');
  await tab.settle();
  await tab.tick(5000);
  equal([tab.count('serve'), tab.count('impression')], [1, 0], 'serves and impressions below the view');
  const top = await tab.page.evaluate(() => document.querySelector('page-spot').getBoundingClientRect().top);
  await scrollTo(tab, top - 800);
  await tab.settle();
  equal(tab.count('impression'), 0, 'impressions with the edges touching');
  await scrollTo(tab, top - 799);
  await tab.waitFor('impression');
  await tab.tick(5000);
  await tab.settle();
  equal(tab.count('viewable'), 0, 'views of one pixel');
  await scrollTo(tab, top - 800 + 124);
  await tab.settle();
  await tab.tick(5000);
  await tab.settle();
  equal(tab.count('viewable'), 0, 'views of less than half');
  await scrollTo(tab, top - 800 + 125);
  await tab.settle();
  await tab.tick(1000);
  await tab.waitFor('viewable');
});

test('a placement may say which share of an ad makes it viewable, and for how long', async tab => {
  await tab.stopClock();
  await tab.open(`<div style="height:900px"></div>${spot('most')}${far}`);
  const top = await tab.page.evaluate(() => document.querySelector('page-spot').getBoundingClientRect().top);
  await scrollTo(tab, top - 800 + 199);
  await tab.waitFor('impression');
  await tab.settle();
  await tab.tick(5000);
  await tab.settle();
  equal(tab.count('viewable'), 0, 'views of less than 80 %');
  await scrollTo(tab, top - 800 + 200);
  await tab.settle();
  await tab.tick(1999);
  await tab.settle();
  equal(tab.count('viewable'), 0, 'views after 1999 ms');
  await tab.tick(1);
  await tab.waitFor('viewable');
});

test('the second in view has no break', async tab => {
  await tab.stopClock();
  await tab.open(`${spot('side')}${far}`);
  await tab.waitFor('impression');
  await tab.settle();
  for (let i = 0; i < 3; i++) {
    await tab.tick(900);
    await scrollTo(tab, 2000);
    await tab.settle();
    await tab.tick(900);
    await scrollTo(tab, 0);
    await tab.settle();
  }
  equal([tab.count('impression'), tab.count('viewable')], [1, 0], 'counted');
  await tab.tick(1000);
  await tab.waitFor('viewable');
});

test('a click counts once and lands on the target', async (tab, {context}) => {
  const before = await counts(1);
  await tab.open(spot('top'));
  await tab.waitFor('impression');
  const [landing] = await Promise.all([context.waitForEvent('page'), tab.page.locator('page-spot a').click()]);
  await landing.waitForURL(/landing\.html\?ad=1$/);
  equal(await landing.evaluate(() => [window.opener, document.querySelector('h1').textContent]), [null, 'Landed'], 'the target');
  const link = await tab.page.locator('page-spot a').getAttribute('href');
  await landing.goto(link);
  await landing.waitForURL(/landing\.html\?ad=1$/);
  equal((await counts(1)).clicks - before.clicks, 1, 'clicks');
});

test('a hidden tab counts nothing until it is seen', async (tab, {context}) => {
  await tab.stopClock();
  const session = await context.newCDPSession(tab.page);
  await tab.open(spot('top'));
  await tab.waitFor('impression');
  await tab.settle();
  await tab.tick(900);
  // The page is told what it is told when another tab is chosen.
  await session.send('Emulation.setFocusEmulationEnabled', {enabled: false});
  await tab.page.evaluate(() => {
    Object.defineProperty(document, 'visibilityState', {configurable: true, get: () => 'hidden'});
    document.dispatchEvent(new Event('visibilitychange'));
  });
  await tab.tick(5000);
  await tab.settle();
  equal(tab.count('viewable'), 0, 'views while hidden');
  await tab.page.evaluate(() => {
    delete document.visibilityState;
    document.dispatchEvent(new Event('visibilitychange'));
  });
  await tab.tick(999);
  await tab.settle();
  equal(tab.count('viewable'), 0, 'views after 999 ms');
  await tab.tick(1);
  await tab.waitFor('viewable');
});

test('two tabs count for themselves', async (tab, {tab: another}) => {
  const before = await counts(1);
  const second = await another();
  for (const one of [tab, second]) {
    await one.open(spot('top'));
    await one.waitFor('impression');
    await one.waitFor('viewable');
  }
  await until('both', async () => (await counts(1)).impressions === before.impressions + 2);
  equal((await counts(1)).serves - before.serves, 2, 'serves');
});

test('without fetch the event is an image', async tab => {
  const size = logSize();
  await tab.page.addInitScript(() => {
    const real = window.fetch;
    window.fetch = (url, options) => options?.method === 'POST' ? Promise.reject(new TypeError('refused')) : real(url, options);
  });
  await tab.open(spot('top'));
  await until('a GET', () => logged(size).some(({method, path, status}) => method === 'GET' && path === '/spot/impression' && status === 200));
});

test('a picture that does not load is no ad', async tab => {
  await tab.open(spot('broken'));
  await tab.emptied('broken');
  await tab.settle();
  equal(tab.count('impression'), 0, 'impressions');
}, {console: [/404/]});

