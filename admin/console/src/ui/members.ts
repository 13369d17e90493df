// The members of an object as fields: what is shown of each, what is sent when it was changed, and its flag of nginx-ads.
import type {Fault} from '../core/http.ts';
import {quoted} from './command.ts';
import {WrongInput, type Values} from './edit.ts';
import type {Field} from './field.ts';

export interface Member extends Omit<Field, 'value'> {
  /** What the field has to begin with. */
  read: (object: unknown) => string;
  /** What is sent for it; null removes it. Throws WrongInput. */
  write: (text: string) => unknown;
  /** Its words of the command line. */
  flag: (text: string) => (string | number)[];
}

type Path = string;

const at = (object: unknown, path: Path): unknown => path.split('.').reduce<unknown>((inside, name) => (inside as Record<string, unknown> | null | undefined)?.[name], object);

const put = (object: Record<string, unknown>, path: Path, value: unknown): void => {
  const names = path.split('.');
  const last = names.pop()!;
  const inside = names.reduce((one, name) => (one[name] ??= {}) as Record<string, unknown>, object);
  inside[last] = value;
};

const wrong = (path: Path, message: string): never => {
  throw new WrongInput([{object: '', path, message}]);
};

type More = Partial<Pick<Field, 'hint' | 'known' | 'required'>>;

export const textMember = (path: Path, label: string, flag: string, more: More = {}): Member => ({
  path, label, ...more, read: object => String(at(object, path) ?? ''), write: text => text.trim() || null, flag: text => [flag, text || 'none'],
});

export const numberMember = (path: Path, label: string, flag: string, more: More = {}): Member => ({
  path, label, kind: 'number', ...more, read: object => String(at(object, path) ?? ''),
  write: text => text.trim() === '' ? null : /^\d+$/.test(text.trim()) ? Number(text) : wrong(path, 'must be a whole number'), flag: text => [flag, text || 'none'],
});

export const moneyMember = (path: Path, label: string, flag: (text: string) => (string | number)[], more: More = {}): Member => ({
  path, label, kind: 'money', ...more,
  read: object => {
    const cents = at(object, path);
    return typeof cents === 'number' ? (cents / 100).toFixed(Math.max(2, String(cents / 100).split('.')[1]?.length ?? 0)) : '';
  },
  write: text => text.trim() === '' ? null : /^\d+([.,]\d{1,6})?$/.test(text.trim()) ? Math.round(Number(text.trim().replace(',', '.')) * 1e8) / 1e6 : wrong(path, 'must be an amount like 2.50'),
  flag,
});

export const choiceMember = (path: Path, label: string, flag: string, choices: Field['choices'], usual: string, more: More = {}): Member => ({
  path, label, kind: 'choice', choices: choices!, ...more, read: object => String(at(object, path) ?? usual), write: text => text, flag: text => flag ? [flag, text] : [],
});

/** Words with commas between them. */
export const listMember = (path: Path, label: string, flag: string, more: More = {}): Member => ({
  path, label, ...more, read: object => ((at(object, path) as string[] | null | undefined) ?? []).join(', '),
  write: text => text.split(',').map(word => word.trim()).filter(Boolean), flag: text => [flag, text.split(',').map(word => word.trim()).filter(Boolean).join(',') || 'none'],
});

export const fieldsOf = (members: readonly Member[], object: unknown): Field[] => members.map(({read, write: _, flag: __, ...field}) => ({...field, value: read(object)}));

const changedIn = (members: readonly Member[], object: unknown, values: Values): Member[] => members.filter(member => (values[member.path] ?? '') !== member.read(object));

/** A merge patch of what was changed. */
export const patchOf = (members: readonly Member[], object: unknown, values: Values): Record<string, unknown> => {
  const patch: Record<string, unknown> = {};
  const faults: Fault[] = [];
  for (const member of changedIn(members, object, values)) {
    try {
      put(patch, member.path, member.write(values[member.path] ?? ''));
    } catch (error) {
      if (!(error instanceof WrongInput)) {
        throw error;
      }
      faults.push(...error.faults);
    }
  }
  if (faults.length) {
    throw new WrongInput(faults);
  }
  return patch;
};

export const flagsOf = (members: readonly Member[], object: unknown, values: Values): string =>
  changedIn(members, object, values).flatMap(member => member.flag(values[member.path] ?? '')).map(quoted).join(' ');
