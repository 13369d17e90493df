// Causes and remedies of a diagnosis are parts of sentences, and name commands for those who read them in a terminal. The page
// has ways of its own, and shows commands apart.
import {count} from '../core/format.ts';

/** The name of a command or of a member keeps its case. */
export const sentence = (text: string): string => text ? text.replace(/^[a-z](?![a-z_]*[-._][a-z])/, first => first.toUpperCase()).replace(/([^.!?])$/, '$1.') : '';

// As the forms of the page call them.
const members: Record<string, string> = {placements: 'placements', geos: 'countries and regions', devices: 'devices', languages: 'languages', keys: 'key-values', urls: 'URL patterns', schedule: 'hours'};

/** 'targeting.geos of ad group 31 "A" is NO' is 'The countries and regions of ad group 31 “A” are NO.' */
export const readable = (text: string): string => sentence(text
  .replace(/\btargeting\.(\w+) of (ad group \d+(?: "[^"]*")?)( is)?/g, (all, name: string, of: string, is?: string) => members[name] ? `the ${members[name]} of ${of}${is ? ' are' : ''}` : all)
  .replaceAll('frequency_caps', 'frequency caps').replace(/"([^"]*)"/g, '“$1”').replace(/\b\d{5,}(?= (?:ads|impressions|clicks|requests)\b)/g, digits => count(Number(digits))));

const lines = /(?:: |, or )(nginx-ads [^,;]*)(?=, or |[,;]|$)/g;

/** "raise the budget: nginx-ads campaign update 7 --budget 9/day" is "Raise the budget." */
export const withoutCommands = (text: string): string => readable(text.replace(lines, ''));
export const commandsIn = (text: string): string[] => [...text.matchAll(lines)].map(([, line]) => line!.trim());
