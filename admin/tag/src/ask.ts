// Requests: one at a time, each for all spots that wait, so that every request knows what the
// page shows already.
import {absolute, keysOf, page, type Ad} from './page.js';
import type {PageSpot} from './spot.js';

const most = 64;  // placements and shown creatives of one request
const waiting = new Set<PageSpot>();
let running = false;
let consent: Promise<unknown> | undefined;

const ready = async (): Promise<void> => {
  if (page.consent.startsWith('wait')) {
    // Without the module the server decides by what the request tells it, as without an answer.
    await (consent ??= page.modules.consent().then(module => module.wait(page.consent), () => {}));
  }
};

const request = async (batch: PageSpot[], keys: Record<string, string>): Promise<void> => {
  const turns = batch.map(spot => spot.turn);
  const shown = [...page.spots].filter(spot => !batch.includes(spot) && spot.ad?.creative).map(spot => spot.ad!.creative);
  const query = new URLSearchParams({placement: batch.map(spot => spot.placement).join(), url: location.href.split('#')[0]!});
  if (shown.length) {
    query.set('shown', shown.slice(-most).join());
  }
  for (const name in keys) {
    query.set('kv.' + name, keys[name]!);
  }
  if (page.debugging) {
    query.set('debug', '1');
  }
  const url = absolute('serve?' + query);
  let answer: any;
  let status = 0;
  try {
    const response = await fetch(url, {credentials: 'include'});
    status = response.status;
    answer = await response.json();
  } catch (error) {
    answer = {error: {message: String(error)}};
  }
  page.asked = [...page.asked, {url, answer}].slice(-20);
  if (status === 400 && batch.length > 1) {
    // One of them is wrong: the others must not pay for it.
    for (const spot of batch) {
      await request([spot], keys);
    }
    return;
  }
  const ads: Ad[] = [...answer.ads ?? []];
  batch.forEach((spot, i) => {
    const at = ads.findIndex(ad => ad.placement === spot.placement);
    // A spot that was removed, or asked again, wants no answer any more.
    if (spot.turn === turns[i] && spot.isConnected) {
      spot.show(at < 0 ? undefined : ads.splice(at, 1)[0]);
    }
  });
};

export const ask = async (spot: PageSpot): Promise<void> => {
  waiting.add(spot);
  if (running) {
    return;
  }
  running = true;
  await ready();
  while (waiting.size) {
    let first = '';
    const batch: PageSpot[] = [];
    for (const one of waiting) {
      const keys = JSON.stringify({...page.keys, ...keysOf(one)});
      first ||= keys;
      if (!one.isConnected) {
        waiting.delete(one);
      } else if (keys === first && batch.length < most) {
        batch.push(one);
        waiting.delete(one);
      }
    }
    if (batch.length) {
      await request(batch, JSON.parse(first)).catch(reportError);
    }
  }
  running = false;
};
