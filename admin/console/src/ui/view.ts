// What all elements of the page are made of: no shadow, so that one style sheet and one tree of labels serve all.
import {LitElement} from 'lit';
import type {Store} from '../core/store.ts';

export {html, nothing, svg, type TemplateResult} from 'lit';

export abstract class View extends LitElement {
  private stops: (() => void)[] = [];

  protected override createRenderRoot(): HTMLElement {
    return this;
  }

  /** Stores that the view renders again for, while it is on the page. */
  protected stores(): Store<unknown>[] {
    return [];
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.stops = this.stores().map(store => store.follow(() => this.requestUpdate()));
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.stops.forEach(stop => stop());
    this.stops = [];
  }
}

/** Defines an element once. */
export const define = (name: string, element: CustomElementConstructor): void => {
  if (!customElements.get(name)) {
    customElements.define(name, element);
  }
};
