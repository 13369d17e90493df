// What a page asks for, and when.
import {equal, ok, spot, test, until} from './harness.mjs';

const creatives = tab => tab.page.evaluate(() => Object.fromEntries([...document.querySelectorAll('page-spot')].map(one => [one.placement, one.ad?.creative ?? null])));

test('all spots that come near the view in one frame are one request', async tab => {
  await tab.open(`${spot('top')}${spot('side')}<div style="height:2000px"></div>${spot('low')}${spot('text')}`);
  await Promise.all([tab.filled('top'), tab.filled('side')]);
  await tab.settle();
  equal(tab.asked(), ['top,side'], 'requests at first');
  await tab.page.evaluate(() => scrollTo(0, 2000));
  await Promise.all([tab.filled('low'), tab.filled('text')]);
  equal(tab.asked(), ['top,side', 'low,text'], 'requests after scrolling');
});

test('a request tells what is shown: exclusions hold over the life of the page', async tab => {
  await tab.open(`${spot('first')}<div style="height:2000px"></div>${spot('second')}`);
  await tab.filled('first');
  await tab.page.evaluate(() => scrollTo(0, 2000));
  await tab.filled('second');
  equal(tab.named('serve').map(({query}) => query.get('shown')), [null, '211'], 'shown');
  equal(await creatives(tab), {first: 211, second: 231}, 'the second is of another advertiser');
  await tab.page.evaluate(() => document.querySelector('[placement=first]').remove());
  await tab.page.evaluate(() => document.querySelector('[placement=second]').refresh());
  await tab.filled('second', 2);
  equal(tab.named('serve').at(-1).query.get('shown'), null, 'what was removed is not shown');
});

test('a set comes whole when its spots are asked for together, and stays whole', async tab => {
  await tab.open(`${spot('left')}<div style="height:2000px"></div>${spot('right', 'loading="eager"')}`);
  await Promise.all([tab.filled('left'), tab.filled('right')]);
  equal(tab.asked(), ['left,right'], 'requests');
  equal(await creatives(tab), {left: 101, right: 111}, 'the set');
  await tab.page.evaluate(() => document.querySelector('[placement=left]').refresh());
  await tab.filled('left', 2);
  equal(await creatives(tab), {left: 101, right: 111}, 'the set, refreshed in part');
});

test('half a set is no set', async tab => {
  await tab.open(`${spot('left')}<div style="height:2000px"></div>${spot('right')}`);
  await tab.emptied('left');
});

test('requests follow one another: what comes while one is under way knows its answer', async tab => {
  await tab.open(spot('first'));
  await tab.page.evaluate(() => {
    const second = document.createElement('page-spot');
    second.setAttribute('placement', 'second');
    document.body.append(second);
  });
  await Promise.all([tab.filled('first'), tab.filled('second')]);
  equal(await creatives(tab), {first: 211, second: 231}, 'the second is of another advertiser');
});

test('spots that are added later, by parts', async tab => {
  await tab.open('');
  await tab.page.evaluate(() => {
    const one = document.createElement('page-spot');
    document.body.append(one);
    one.setAttribute('placement', 'top');
  });
  await tab.filled('top');
  await tab.settle();
  equal(tab.asked(), ['top'], 'requests');
});

test('another placement is another request', async tab => {
  await tab.open(spot('top'));
  await tab.filled('top');
  await tab.page.evaluate(() => document.querySelector('page-spot').setAttribute('placement', 'top'));
  await tab.page.evaluate(() => document.querySelector('page-spot').setAttribute('placement', 'side'));
  await tab.filled('side');
  equal(tab.asked(), ['top', 'side'], 'requests');
});

test('an answer that comes too late is not shown', async tab => {
  let free;
  const held = new Promise(done => { free = done; });
  await tab.page.route('**/spot/serve?*', async route => {
    if (route.request().url().includes('placement=top')) {
      await held;
    }
    await route.continue();
  });
  await tab.open(`${spot('top')}${spot('low')}`);
  await tab.waitFor('serve');
  await tab.page.evaluate(() => {
    document.querySelector('[placement=low]').remove();
    document.querySelector('[placement=top]').setAttribute('placement', 'side');
  });
  free();
  await tab.filled('side');
  equal(await tab.events(), ['fill side'], 'events');
  equal(tab.asked(), ['top,low', 'side'], 'requests');
});

test('a spot that is moved keeps its ad', async tab => {
  await tab.open(`<div id="a">${spot('top')}${spot('side')}</div><div id="b"></div>`);
  await Promise.all([tab.filled('top'), tab.filled('side')]);
  await tab.waitFor('impression', 2);
  await tab.page.evaluate(() => {
    const b = document.querySelector('#b');
    b.append(document.querySelector('[placement=top]'));
    b.moveBefore?.(document.querySelector('[placement=side]'), null);
  });
  await tab.settle();
  equal(await creatives(tab), {top: 11, side: 21}, 'ads');
  equal([tab.asked(), tab.count('impression')], [['top,side'], 2], 'requests');
});

test('a spot that is removed is freed', async tab => {
  await tab.open(`<div id="box">${spot('top')}${spot('side', 'refresh="30"')}</div>`);
  await Promise.all([tab.filled('top'), tab.filled('side')]);
  await tab.page.evaluate(() => {
    window.kept = [...document.querySelectorAll('page-spot')].map(one => new WeakRef(one));
    document.querySelector('#box').remove();
  });
  // The browser itself holds an element until its observers have delivered what they saw.
  await until('both collected', async () => {
    await tab.page.requestGC();
    return tab.page.evaluate(() => window.kept.every(one => one.deref() === undefined));
  });
});

test('another path is another page', async tab => {
  await tab.open(`${spot('top')}<div id="view">${spot('side')}</div>`);
  await Promise.all([tab.filled('top'), tab.filled('side')]);
  await tab.page.evaluate(() => {
    history.pushState(null, '', '/pages/sport/');
    const low = document.createElement('page-spot');
    low.setAttribute('placement', 'low');
    document.querySelector('#view').replaceChildren(low);
  });
  await Promise.all([tab.filled('top', 2), tab.filled('low')]);
  await tab.settle();
  equal(tab.asked(), ['top,side', 'top,low'], 'requests');
  ok(tab.named('serve').at(-1).query.get('url').endsWith('/pages/sport/'), 'the address of the new page');
  await tab.page.evaluate(() => {
    history.pushState(null, '', '?page=2');
    history.replaceState(null, '', '#part');
  });
  await tab.settle();
  equal(tab.count('serve'), 2, 'requests after another query or fragment');
  await tab.page.evaluate(() => history.go(-2));
  await tab.filled('top', 3);
});

test('refresh="30" asks again after 30 seconds in view, and only in view', async tab => {
  await tab.stopClock();
  await tab.open(`${spot('top', 'refresh="5"')}<div style="height:3000px"></div>`);
  await tab.waitFor('impression');
  await tab.settle();
  await tab.tick(29_999);
  await tab.settle();
  equal(tab.count('serve'), 1, 'requests after 29.999 s');
  await tab.tick(1);
  await tab.filled('top', 2);
  await tab.waitFor('impression', 2);
  await tab.settle();
  await tab.page.evaluate(() => scrollTo(0, 2000));
  await tab.settle();
  await tab.tick(120_000);
  await tab.settle();
  equal(tab.count('serve'), 2, 'requests out of view');
  await tab.page.evaluate(() => scrollTo(0, 0));
  await tab.settle();
  await tab.tick(1);
  await tab.filled('top', 3);
});

test('who prefers reduced motion has no ads that change by themselves', async tab => {
  await tab.stopClock();
  await tab.open(spot('top', 'refresh="30"'));
  await tab.waitFor('impression');
  await tab.settle();
  await tab.tick(120_000);
  await tab.settle();
  equal(tab.count('serve'), 1, 'requests');
}, {context: {reducedMotion: 'reduce'}});

test('spots.refresh() is one request', async tab => {
  await tab.open(`${spot('top')}${spot('side')}<div style="height:3000px"></div>${spot('low')}`);
  await Promise.all([tab.filled('top'), tab.filled('side')]);
  await tab.page.evaluate(() => window.spots.refresh());
  await Promise.all([tab.filled('top', 2), tab.filled('side', 2)]);
  equal(tab.asked(), ['top,side', 'top,side'], 'requests');
});

test('key-values of the page, of the script and of a spot', async tab => {
  await tab.open(`${spot('section')}${spot('top')}${spot('side', 'data-key-section="travel"')}`, {
    script: '<script>window.spots = {keys: {section: "sport"}}</script><script async src="/spot/tag.js" data-key-edition="north"></script>',
  });
  await Promise.all([tab.filled('section'), tab.filled('top'), tab.filled('side')]);
  equal(tab.named('serve').map(({query}) => [query.get('placement'), query.get('kv.section'), query.get('kv.edition')]),
    [['section,top', 'sport', 'north'], ['side', 'travel', 'north']], 'requests');
  equal((await creatives(tab)).section, 121, 'the ad of the section');
  await tab.page.evaluate(() => {
    window.spots.keys.section = 'food';
    document.querySelector('[placement=section]').refresh();
  });
  await tab.filled('section', 2);
  equal((await creatives(tab)).section, 131, 'the ad without it');
});

test('one wrong placement does not cost the others their ads', async tab => {
  await tab.open(`${spot('top')}${spot('unknown')}${spot('side')}`);
  await Promise.all([tab.filled('top'), tab.filled('side'), tab.emptied('unknown')]);
}, {console: [/400/]});

test('a server that does not answer leaves the page as it is', async tab => {
  await tab.page.route('**/spot/serve?*', route => route.abort());
  await tab.open(spot('top', '', '<a href="/subscribe.html">Subscribe</a>'));
  await tab.emptied('top');
  ok(await tab.page.locator('page-spot a').isVisible(), 'what the page has for such a case is seen');
}, {console: [/ERR_FAILED/]});

test('on another host', async tab => {
  const {site} = await import('./harness.mjs');
  const host = new URL(site).port;
  const url = await tab.open(spot('top'), {script: `<script async src="${site}/spot/tag.js"></script>`});
  await tab.page.goto(url.replace('127.0.0.1', 'localhost'));
  await tab.waitFor('impression');
  equal(await tab.page.locator('page-spot a').getAttribute('href').then(href => href.startsWith(`http://127.0.0.1:${host}/spot/click?t=`)), true, 'the click');
});
