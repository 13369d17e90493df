// A panel that shows what the page asked, what it got, and why not something else.
import type {Asked, page} from './page.js';

type Page = typeof page;

const style = `
:host{position:fixed;inset:auto 0 0 auto;z-index:2147483647;max-width:100%}
section{box-sizing:border-box;width:28rem;max-width:100vw;max-height:60vh;overflow:auto;padding:.75rem 1rem;
  background:#fff;color:#1a1a1a;font:14px/1.4 system-ui,sans-serif;border:1px solid #767676}
h2{font-size:1rem;margin:0 0 .5rem}h3{font-size:.875rem;margin:.75rem 0 .25rem;overflow-wrap:anywhere}
p,ul{margin:.25rem 0}ul{padding-left:1.25rem}
button{font:inherit;color:inherit;margin-right:.5rem;padding:.25rem .75rem;background:#f2f2f2;border:1px solid #767676}
button:focus-visible{outline:2px solid #0b57d0;outline-offset:1px}`;

const element = <K extends keyof HTMLElementTagNameMap>(name: K, text = '', ...nodes: Node[]): HTMLElementTagNameMap[K] => {
  const node = document.createElement(name);
  node.append(text, ...nodes);
  return node;
};

const list = (texts: string[]): Node => texts.length ? element('ul', '', ...texts.map(text => element('li', text))) : new Text();

const describe = ({url, answer}: Asked): Node[] => {
  const query = new URL(url).searchParams;
  const nodes: Node[] = [element('h3', query.get('placement')!)];
  const more = [...query].filter(([name]) => !['placement', 'url', 'debug'].includes(name)).map(([name, value]) => `${name}=${value}`);
  if (more.length) {
    nodes.push(element('p', more.join(' ')));
  }
  const left: any[] = [...answer.ads ?? []];
  const won = (placement: string): string => {
    const at = left.findIndex(ad => ad.placement === placement);
    const [ad] = at < 0 ? [] : left.splice(at, 1);
    return ad ? `campaign ${ad.campaign}, ad group ${ad.ad_group}, creative ${ad.creative} (${ad.type})` : 'no ad';
  };
  nodes.push(answer.error ? element('p', 'Error: ' + answer.error.message)
    : list(query.get('placement')!.split(',').map(placement => `${placement}: ${won(placement)}`)));
  for (const {placement, candidates} of answer.debug ?? []) {
    nodes.push(element('p', `Candidates for ${placement}: ${candidates.length || 'none'}`),
      list(candidates.map((one: {ad_group: number; reason: string}) => `ad group ${one.ad_group}: ${one.reason}`)));
  }
  return nodes;
};

let panel: HTMLElement | undefined;

/** Opens the panel; it follows what the page asks. */
export const open = (page: Page): void => {
  panel?.remove();
  const host = panel = element('div');
  const root = host.attachShadow({mode: 'open'});
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(style);
  root.adoptedStyleSheets = [sheet];
  const requests = element('div');
  const again = element('button', 'Ask again');
  const close = element('button', 'Close');
  const box = element('section', '', element('h2', 'Spots on this page'), again, close, requests);
  box.setAttribute('aria-label', 'Spots on this page');
  box.tabIndex = 0;
  root.append(box);
  const draw = (): void => {
    const latest = [...page.asked].reverse().flatMap(describe);
    const note = page.asked.some(asked => asked.answer.debug) ? []
      : [element('p', 'Why an ad was refused is in the answers to requests from now on, where ads_explain allows it.')];
    requests.replaceChildren(...note, ...latest);
  };
  again.onclick = () => page.spots.forEach(spot => spot.refresh());
  close.onclick = () => {
    host.remove();
    document.removeEventListener('fill', draw);
    document.removeEventListener('empty', draw);
  };
  document.addEventListener('fill', draw);
  document.addEventListener('empty', draw);
  draw();
  document.body.append(host);
};
