import { z } from 'zod';
import { Text } from './text.ts';

export const maxLabels = 20;
const maxLabelLength = 64;

/** A word that devices and contacts are sorted by: 1 to 64 characters. */
const Label = Text.min(1).refine(
  (text) => Array.from(text).length <= maxLabelLength,
  `expected at most ${maxLabelLength} characters`,
);

/** Up to 20 of them, each once. */
export const Labels = z
  .array(Label)
  .max(maxLabels)
  .refine((labels) => new Set(labels).size === labels.length, 'expected each label once');
