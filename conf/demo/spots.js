// What any page does with the JSON of ads_serve: ask, show, and load the pixels.

// Fills `places` (names of placements) with one request.
export async function ask(places, parameters = {}, options = {}) {
  const query = [`placement=${places.join(',')}`];
  for (const [name, value] of Object.entries(parameters)) {
    if (value) {
      query.push(`${name}=${encodeURIComponent(value)}`);
    }
  }
  const url = '/spot/serve?' + query.join('&');
  const response = await fetch(url, { cache: 'no-store', ...options });
  const answer = await response.json();
  if (!response.ok) {
    throw new Error(answer.error?.message ?? `${url} answered ${response.status}`);
  }
  return { ...answer, url, microseconds: Number(response.headers.get('X-Decision-Time')) * 1e6 };
}

// By style: content blockers hide img[width="728"][height="90"].
function size(node, { width, height }) {
  node.style.width = `${width}px`;
  node.style.height = `${height}px`;
  return node;
}

function link(creative) {
  const a = document.createElement('a');
  a.href = creative.click_url;
  a.target = '_blank';
  a.rel = 'noopener sponsored';
  return a;
}

// Markup is never parsed in this page: it stands in a frame without scripts, forms or this page's origin.
function frame(creative) {
  const box = document.createElement('iframe');
  box.sandbox = 'allow-popups allow-popups-to-escape-sandbox';
  box.title = 'Advertisement';
  box.src = creative.frame_url;
  return box;
}

// Puts a creative into its box; resolves when it is there to be seen.
export function show(box, creative) {
  const click = link(creative);
  let loads;
  if (creative.type === 'image') {
    loads = size(new Image(), creative);
    loads.src = creative.content.src;
    loads.alt = creative.content.alt ?? '';
    click.append(loads);
    box.replaceChildren(click);
  } else if (creative.type === 'html') {
    loads = size(frame(creative), creative);
    box.replaceChildren(loads);
  } else {
    const title = document.createElement('strong');
    title.textContent = creative.content.title;
    const body = document.createElement('span');
    body.textContent = creative.content.body ?? '';
    click.append(title, ' ', body);
    box.replaceChildren(click);
    return Promise.resolve();
  }
  return new Promise((done, fail) => {
    loads.addEventListener('load', () => done(), { once: true });
    loads.addEventListener('error', () => fail(new Error('the picture did not load')), { once: true });
  });
}

// Loads a pixel. A page would say `new Image().src = url`; this one wants to know the answer.
export async function pixel(url, options = {}) {
  return (await fetch(url, { cache: 'no-store', keepalive: true, ...options })).status;
}

// Resolves once half of the box has been in view for a second; rejects when `signal` ends it.
export function seen(box, signal) {
  return new Promise((done, fail) => {
    let timer;
    const watch = new IntersectionObserver(entries => {
      clearTimeout(timer);
      if (entries.at(-1).isIntersecting) {
        timer = setTimeout(() => { watch.disconnect(); done(); }, 1000);
      }
    }, { threshold: 0.5 });
    signal.addEventListener('abort', () => { clearTimeout(timer); watch.disconnect(); fail(signal.reason); });
    watch.observe(box);
  });
}
