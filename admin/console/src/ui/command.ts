// The line of nginx-ads that does the same.
import {html, type TemplateResult} from 'lit';
import {define, View} from './view.ts';

/** A word of a shell. */
export const quoted = (word: string | number): string => {
  const text = String(word);
  return /^[\w./:=@%+,!-]+$/.test(text) ? text : `'${text.replaceAll('\'', '\'\\\'\'')}'`;
};

export const commandLine = (...words: (string | number)[]): string => ['nginx-ads', ...words.map(quoted)].join(' ');

class CopyText extends View {
  static override properties = {text: {}, what: {}, done: {state: true}};
  declare text: string;
  declare what: string;
  declare private done: boolean;

  private async copy(): Promise<void> {
    await navigator.clipboard.writeText(this.text);
    this.done = true;
    window.setTimeout(() => { this.done = false; }, 2000);
  }

  protected override render(): TemplateResult {
    return html`<div class="copy"><pre tabindex="0" aria-label=${this.what}><code>${this.text}</code></pre><button class="quiet" @click=${() => void this.copy()} aria-label="Copy: ${this.what}">${this.done ? 'Copied' : 'Copy'}</button></div>`;
  }
}

define('copy-text', CopyText);

export const copyable = (text: string, what: string): TemplateResult => html`<copy-text .text=${text} .what=${what}></copy-text>`;

export const command = (line: string): TemplateResult => html`<div class="command"><span>As a command</span>${copyable(line, 'the same as a command')}</div>`;
