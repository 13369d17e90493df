import {ok, run, site, test} from './harness.mjs';

test('the first paint waits for no query', async ({page}) => {
  await page.goto(`${site}/console/`);
  await page.getByRole('heading', {name: 'Today'}).waitFor();
  await page.getByRole('link', {name: 'Campaigns', exact: true}).waitFor();
  ok(await page.getByText('Loading…').count() > 0, 'what is not there yet says so');
  await page.locator('.stream.on').waitFor();
}, {listen: false, context: {httpCredentials: {username: 'manager', password: 'secret', send: 'always'}}});

await run();
