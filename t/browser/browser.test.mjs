// What browsers do with pages: they prerender them, keep them, hide them, and forbid things.
import {equal, launch, logged, logSize, inPage, ok, spot, test, until, write, document} from './harness.mjs';

const serves = from => logged(from).filter(({path}) => path === '/spot/serve');

// Tabs that nothing is attached to before the test says something to them: others are always in
// front, and prerender no page to its end.
const rawTabs = async browser => {
  const session = await browser.newBrowserCDPSession();
  return {
    async open(url, options = {}) {
      const {targetId} = await session.send('Target.createTarget', {url, ...options});
      let id = 0;
      return {
        async evaluate(expression) {
          const {sessionId} = await session.send('Target.attachToTarget', {targetId, flatten: false});
          await session.send('Target.sendMessageToTarget', {sessionId, message: JSON.stringify({id: ++id, method: 'Runtime.evaluate', params: {expression}})});
        },
        choose: () => session.send('Target.activateTarget', {targetId}),
      };
    },
  };
};

test('a page that is prerendered asks when it is seen', async () => {
  const browser = await launch([], ['--disable-background-networking']);
  try {
    const size = logSize();
    const later = write('pages/later.html', document(spot('top')));
    const rules = JSON.stringify({prerender: [{source: 'list', urls: [later], eagerness: 'immediate'}]});
    write('pages/go.txt', '');
    const first = write('pages/first.html', document('', {script: '', head: `<script>
      const look = async () => {
        if (!await (await fetch('go.txt', {cache: 'no-store'})).text() || document.visibilityState !== 'visible') {
          setTimeout(look, 50);
          return;
        }
        const script = document.createElement('script');
        script.type = 'speculationrules';
        script.textContent = '${rules}';
        document.head.append(script);
      };
      addEventListener('load', look);
    </script>`}));
    const loaded = path => logged(size).filter(entry => entry.path === path);
    const tab = await (await rawTabs(browser)).open(first);
    await until('the first page', () => loaded('/pages/go.txt').length > 0);
    await tab.choose();  // a page that is not in front, or comes to the front meanwhile, prerenders nothing to its end
    write('pages/go.txt', 'go');
    await until('the script of the prerendered page', () => loaded('/spot/tag.js').length === 1);
    equal(loaded('/pages/later.html').map(({purpose}) => purpose), ['prefetch;prerender'], 'the page, and why');
    equal(loaded('/spot/tag.js').map(({purpose}) => purpose), ['prefetch;prerender'], 'its script, and why');
    await tab.evaluate(`fetch('/barrier.txt')`);
    await until('a request after it', () => loaded('/barrier.txt').length === 1);
    equal(serves(size), [], 'requests for ads while it is not seen');
    await tab.evaluate(`location.href = '${later}'`);
    await until('an impression', () => loaded('/spot/impression').length === 1);
    equal([loaded('/pages/later.html').length, serves(size).map(({purpose}) => purpose)], [1, ['-']], 'loads, and requests for ads');
  } finally {
    await browser.close();
  }
}, {bare: true});

test('a page that comes back from the cache asks and counts nothing', async () => {
  const browser = await launch([], ['--disable-back-forward-cache']);
  try {
    await inPage(browser, async tab => {
      const other = write('pages/other.html', document('', {script: ''}));
      await tab.open(`${spot('top')}<script>addEventListener('pageshow', event => { event.persisted && fetch('/restored.txt'); });</script>`);
      const begin = logSize();
      await until('a view', () => logged(begin).some(({path}) => path === '/spot/viewable'));
      const size = logSize();
      await tab.page.goto(other);
      await tab.page.evaluate(() => history.back());
      await until('the restored page', () => logged(size).some(({path}) => path === '/restored.txt'));
      // Its script runs before the driver knows that this is the page again.
      await tab.page.waitForFunction(() => document.querySelector('page-spot') !== null);
      await tab.settle();
      equal(logged(size).filter(({path}) => path.startsWith('/spot/')), [], 'requests');
      ok(await tab.page.locator('page-spot img').isVisible(), 'the ad is still there');
    });
  } finally {
    await browser.close();
  }
}, {bare: true});

test('a tab behind another asks and counts nothing until it is chosen', async () => {
  const browser = await launch();
  try {
    const size = logSize();
    const tabs = await rawTabs(browser);
    const behind = write('pages/behind.html', document(spot('top')));
    await tabs.open(write('pages/front.html', document('', {script: ''})));
    const target = await tabs.open(behind, {background: true});
    await until('its script', () => logged(size).some(({path}) => path === '/spot/tag.js'));
    await target.evaluate(`fetch('/barrier.txt?' + document.visibilityState)`);
    await until('a request after it', () => logged(size).some(({path, query}) => path === '/barrier.txt' && query.has('hidden')));
    equal(serves(size), [], 'requests for ads');
    await target.choose();
    await until('a view', () => logged(size).some(({path}) => path === '/spot/viewable'));
    equal(logged(size).filter(({path}) => path.startsWith('/spot/') && !path.endsWith('.css')).map(({path}) => path.slice(6)), ['tag.js', 'serve', 'impression', 'viewable'], 'requests');
  } finally {
    await browser.close();
  }
}, {bare: true});
