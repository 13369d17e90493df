import {equal, ok, run, site, test, until} from './harness.mjs';

test('while the API is away the node shows what it knows', async ({page}) => {
  await page.goto(`${site}/console/`);
  await page.getByText('The API is away').waitFor();
  await until('figures of the node', async () => Number((await page.locator('.tile .value').first().innerText()).replace(/\D/g, '')) > 0);
  equal(await page.locator('.top nav a').allInnerTexts(), ['Today', 'Why', 'Placements', 'Health'], 'pages');
  await page.getByRole('link', {name: 'Health'}).click();
  await page.getByText('Generation', {exact: true}).first().waitFor();
  ok(await page.getByText('The API is away').isVisible(), 'and says so');
}, {listen: false, context: {httpCredentials: {username: 'manager', password: 'secret', send: 'always'}}, console: [/^error: Failed to load resource: .* 502/]});

await run();
