// The frame of all pages: menu, state of the stream, theme, and the page of the address.
import {keyed} from 'lit/directives/keyed.js';
import {count, rate} from './core/format.ts';
import {live} from './core/live.ts';
import {address, router} from './core/router.ts';
import {session} from './core/session.ts';
import type {Store} from './core/store.ts';
import {pageOf, pages, type Page} from './pages/index.ts';
import './ui/notify.ts';
import {waiting} from './ui/source.ts';
import {define, html, nothing, View, type TemplateResult} from './ui/view.ts';

const themes = ['system', 'light', 'dark'] as const;
type Theme = (typeof themes)[number];
const kept = 'console-theme';

const theme = (): Theme => themes.find(one => one === localStorage.getItem(kept)) ?? 'system';
const apply = (): void => {
  document.documentElement.dataset['theme'] = theme();
  dispatchEvent(new Event('themechange'));
};

class ConsoleApp extends View {
  private stopLive: (() => void) | undefined;
  private shown = '';

  protected override stores(): Store<unknown>[] {
    return [router, session];
  }

  override connectedCallback(): void {
    this.replaceChildren();
    super.connectedCallback();
    apply();
  }

  protected override updated(): void {
    // The stream goes on over all pages: it tells when what was saved is served.
    if (session.seesNode && !this.stopLive) {
      this.stopLive = live.follow(() => this.requestUpdate());
    }
    const {name, id} = router.route;
    const now = `${name}/${id}`;
    document.title = `${pageOf(router.route)?.title ?? 'Console'}${id ? ` ${id}` : ''} · nginx-ads`;
    if (this.shown !== now) {
      this.querySelector('nav [aria-current]')?.scrollIntoView({block: 'nearest', inline: 'nearest'});
    }
    if (this.shown && this.shown !== now) {
      scrollTo(0, 0);
      this.querySelector<HTMLElement>('main')?.focus({preventScroll: true});
    }
    this.shown = now;
  }

  private menu(which: Page['menu']): TemplateResult {
    return html`<ul>${pages().filter(page => page.menu === which).map(page =>
      html`<li><a href=${address(page.name)} aria-current=${page.name === router.route.name ? 'page' : nothing}>${page.title}</a></li>`)}</ul>`;
  }

  private state(): TemplateResult | typeof nothing {
    if (!session.seesNode) {
      return nothing;
    }
    const frame = live.value;
    return html`<span class="stream ${live.connected ? 'on' : 'off'}" title=${live.connected ? 'ads_live sends the figures of this node once per second' : live.error?.message ?? 'connecting'}>
      <span class="dot" aria-hidden="true"></span>${live.connected ? html`live<span class="wide"> · ${rate(live.average('requests'))} requests/s · generation ${count(frame?.generation)}</span>` : 'not live'}</span>`;
  }

  private nextTheme(): void {
    const next = themes[(themes.indexOf(theme()) + 1) % themes.length]!;
    if (next === 'system') {
      localStorage.removeItem(kept);
    } else {
      localStorage.setItem(kept, next);
    }
    apply();
    this.requestUpdate();
  }

  private body(): TemplateResult {
    if (session.value === undefined) {
      return waiting(session);
    }
    const page = pageOf(router.route);
    return page
      ? html`${keyed(`${session.managed} ${page.takesQuery ? page.name : location.hash}`, page.render(router.route))}`
      : html`<h1>There is no such page</h1><p>It may need rights that you do not have, or the API. <a href=${address('today')}>Today</a></p>`;
  }

  protected override render(): TemplateResult {
    const me = session.value;
    return html`<a class="skip" href="#main" @click=${(event: Event) => { event.preventDefault(); this.querySelector<HTMLElement>('main')!.focus(); }}>Skip to the page</a>
      <header class="top"><a class="brand" href=${address('today')}><img src="icon.svg" alt="" width="20" height="20"> nginx-ads</a>
        <nav aria-label="Pages">${this.menu('ads')}${this.menu('system')}</nav>
        <div class="corner">${this.state()}
          ${me ? html`<span class="user" title="as nginx has authenticated you">${me.user}<span class="wide"> · ${me.advertiser ?? me.role}</span></span>` : nothing}
          <button class="quiet" @click=${() => this.nextTheme()} aria-label="Theme: ${theme()}" title="Theme: ${theme()}">${{system: '◐', light: '☀', dark: '☾'}[theme()]}</button></div></header>
      ${me !== null ? nothing : session.error ? html`<p class="banner away" role="alert">The API is away: ${session.error.message}. Until it is back, this is what the node itself knows.</p>`
        : html`<p class="banner">This console shows what the node itself knows, read-only: no <code>nginx-ads api</code> is configured beside it.</p>`}
      <main id="main" tabindex="-1">${this.body()}</main>
      <notice-list></notice-list>`;
  }
}

define('console-app', ConsoleApp);
