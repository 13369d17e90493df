// Pause, resume, archive and clone, each asked for once more with what it changes.
import {html} from 'lit';
import {commandLine} from './command.ts';
import {ask, type Edited} from './edit.ts';

export type Kind = 'advertiser' | 'campaign' | 'ad-group' | 'creative' | 'placement' | 'experiment';

export interface Of {
  kind: Kind;
  id: number | string;
  name: string;
}

const words = {
  pause: ['Pause', 'It is not served until it is resumed.'],
  resume: ['Resume', ''],
  archive: ['Archive', 'It ends for good: what is archived cannot be changed any more, only cloned.'],
  clone: ['Clone', 'A draft of the same, with all that is in it and nothing spent.'],
} as const;

export const act = (action: keyof typeof words, {kind, id, name}: Of, called = words[action][0] as string): Promise<Edited | undefined> => {
  const [word, note] = [called, words[action][1]];
  const path = `/${kind}s/${encodeURIComponent(id)}/${action}`;
  const what = `${kind.replace('-', ' ')} ${name ? `“${name}”` : id}`;
  const cloned = action === 'clone';
  const byName = kind === 'placement' || kind === 'advertiser';
  return ask({
    title: `${word} ${what}?`, save: word, danger: action === 'archive', method: 'POST', path, ...note ? {note: html`<p>${note}</p>`} : {},
    fields: cloned ? [{path: 'name', label: byName && kind === 'placement' ? 'Id of the new one' : 'Name of the new one', value: byName ? '' : `${name} (copy)`}] : [],
    body: values => cloned && values['name'] ? {name: values['name']} : {},
    command: values => cloned ? commandLine(kind, 'clone', id, ...values['name'] ? ['--name', values['name']] : []) : commandLine(kind, action, id),
  });
};
