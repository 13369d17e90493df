// Nodes for ads. Nothing is ever parsed: texts are texts, and markup stands in a frame by its URL.
import {absolute, page, type Ad} from './page.js';

const create = <K extends keyof HTMLElementTagNameMap>(name: K): HTMLElementTagNameMap[K] => document.createElement(name);

// By style: an img of a usual size by attributes is hidden by content blockers.
const size = (node: HTMLElement, {width, height}: Ad): void => {
  if (width) {
    node.style.width = width + 'px';
    node.style.aspectRatio = width + '/' + height;
  } else {
    node.style.width = '100%';
  }
};

const link = (node: HTMLAnchorElement, ad: Ad): void => {
  node.href = absolute(ad.click_url);
  node.target = '_blank';
  node.rel = 'noopener sponsored';
};

const native = (ad: Ad, template?: HTMLTemplateElement | null): Node => {
  const set = (node: Element, value: string): void => {
    if (node instanceof HTMLImageElement) {
      node.src = absolute(value);
    } else {
      node.textContent = value;
    }
  };
  if (template) {
    const content = document.importNode(template.content, true);
    for (const node of content.querySelectorAll<HTMLElement>('[data-field]')) {
      const value = ad.content[node.dataset.field!];
      value ? set(node, value) : node.remove();
    }
    for (const node of content.querySelectorAll<HTMLAnchorElement>('a:not([href])')) {
      link(node, ad);
    }
    return content;
  }
  const box = create('a');
  box.className = 'spot-native';
  link(box, ad);
  for (const name of new Set(['image', 'title', 'body', ...Object.keys(ad.content)])) {
    if (!ad.content[name]) {
      continue;
    }
    const node = create(name === 'image' ? 'img' : name === 'title' ? 'strong' : 'span');
    node.className = 'spot-' + name;
    if (node instanceof HTMLImageElement) {
      node.alt = '';
    }
    set(node, ad.content[name]!);
    box.append(node, ' ');
  }
  return box;
};

/** What shows the ad, and the part of it that must load first. */
export interface Rendered {
  node: HTMLElement;
  loads?: HTMLImageElement | HTMLIFrameElement;
}

let frames = 0;

export const render = (ad: Ad, template?: HTMLTemplateElement | null): Rendered | undefined => {
  if (ad.type === 'image') {
    const node = create('a');
    const loads = create('img');
    link(node, ad);
    size(loads, ad);
    loads.alt = ad.content.alt || page.label;
    loads.src = absolute(ad.content.src!);
    node.append(loads);
    return {node, loads};
  }
  if (ad.type === 'native') {
    const node = create('div');
    node.append(native(ad, template));
    return {node};
  }
  if (ad.frame_url) {
    const loads = create('iframe');
    size(loads, ad);
    loads.setAttribute('sandbox', (ad.type === 'tag' ? 'allow-scripts ' : '') + 'allow-popups allow-popups-to-escape-sandbox');
    loads.title = page.label + ' ' + ++frames;
    loads.referrerPolicy = 'no-referrer';
    loads.scrolling = 'no';
    loads.src = absolute(ad.frame_url);
    return {node: loads, loads};
  }
  return undefined;
};
