// Fields of forms: a label, a control, a hint, and what the validator says about it.
import {html, nothing, type TemplateResult} from 'lit';
import {live as current} from 'lit/directives/live.js';
import type {Fault} from '../core/http.ts';

export interface Field {
  /** Where it stands in the object, as the validator names it: "budget.amount_cents". */
  path: string;
  label: string;
  value: string;
  kind?: 'text' | 'number' | 'money' | 'date' | 'choice' | 'long';
  choices?: readonly (string | [value: string, text: string])[];
  hint?: unknown;
  required?: boolean;
  disabled?: boolean;
  /** Known values, offered while one types. */
  known?: readonly string[];
}

let numbers = 0;
const ids = new Map<string, number>();
const idOf = (path: string): string => {
  const number = ids.get(path) ?? ++numbers;
  ids.set(path, number);
  return `field-${number}`;
};

/** Those of the object, and of what is in it: a fault of "price" belongs to "price.model" as well. */
export const faultsAt = (faults: readonly Fault[], path: string): Fault[] =>
  faults.filter(fault => fault.path === path || fault.path.startsWith(`${path}.`) || fault.path.startsWith(`${path}[`));

export const field = (of: Field, faults: readonly Fault[], changed: (value: string) => void): TemplateResult => {
  const id = idOf(of.path);
  const wrong = faultsAt(faults, of.path);
  const described = [of.hint ? `${id}-hint` : '', wrong.length ? `${id}-wrong` : ''].filter(Boolean).join(' ') || nothing;
  const take = (event: Event) => changed((event.target as HTMLInputElement).value);
  const state = wrong.length ? 'true' : nothing;
  const control = () => {
    switch (of.kind) {
      case 'choice':
        return html`<select id=${id} name=${of.path} aria-invalid=${state} aria-describedby=${described} ?disabled=${of.disabled} @change=${take}>
          ${of.choices!.map(choice => {
            const [value, text] = typeof choice === 'string' ? [choice, choice] : choice;
            return html`<option value=${value} ?selected=${value === of.value}>${text}</option>`;
          })}</select>`;
      case 'long':
        return html`<textarea id=${id} name=${of.path} rows="6" spellcheck="false" aria-invalid=${state} aria-describedby=${described} ?required=${of.required} ?disabled=${of.disabled} .value=${current(of.value)} @input=${take}></textarea>`;
      default:
        return html`<input id=${id} name=${of.path} type=${of.kind === 'date' ? 'date' : 'text'} inputmode=${of.kind === 'number' ? 'numeric' : of.kind === 'money' ? 'decimal' : nothing}
          autocomplete="off" list=${of.known ? `${id}-known` : nothing} aria-invalid=${state} aria-describedby=${described} ?required=${of.required} ?disabled=${of.disabled} .value=${current(of.value)} @input=${take}>
          ${of.known ? html`<datalist id="${id}-known">${of.known.map(value => html`<option value=${value}></option>`)}</datalist>` : nothing}`;
    }
  };
  return html`<div class="field ${wrong.length ? 'wrong' : ''}"><label for=${id}>${of.label}</label>${control()}
    ${of.hint ? html`<p class="hint" id="${id}-hint">${of.hint}</p>` : nothing}
    ${wrong.length ? html`<p class="fault" id="${id}-wrong">${wrong.map(fault => fault.message).join('; ')}</p>` : nothing}</div>`;
};

/** Faults that no field of the form is about. */
export const otherFaults = (faults: readonly Fault[], fields: readonly Field[]): TemplateResult | typeof nothing => {
  const rest = faults.filter(fault => !fields.some(one => faultsAt([fault], one.path).length));
  return rest.length ? html`<ul class="faults" role="alert">${rest.map(fault => html`<li>${[fault.object, fault.path].filter(Boolean).join(', ')}: ${fault.message}</li>`)}</ul>` : nothing;
};
