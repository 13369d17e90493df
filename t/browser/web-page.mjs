import {equal, ok, run, site, test} from './harness.mjs';

test('the first page of the documentation shows an ad, and nothing on it moves', async tab => {
  await tab.page.goto(`${site}/first.html`);
  await tab.filled('home-top');
  await tab.waitFor('viewable');
  ok(await tab.page.locator('page-spot').locator('img, iframe').first().isVisible(), 'the ad is seen');
  equal(await tab.page.evaluate(() => window.shifts), 0, 'layout shift');
  // An HTML ad, which the draw may choose, comes in a frame.
  const asked = tab.requests.map(({method, name}) => `${method} ${name}`).filter(one => one !== 'GET frame');
  equal(asked, ['GET serve', 'POST impression', 'POST viewable'], 'requests');
  await tab.page.evaluate(() => window.spots.debug());
  ok(await tab.page.getByText(/^home-top: campaign/).isVisible(), 'the panel says which ad it is');
  if (process.env.SHOTS) {
    await tab.page.screenshot({path: `${process.env.SHOTS}/first.png`});
  }
});

await run();
