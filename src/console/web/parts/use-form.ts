import type { RefObject } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { ApiError } from '../api/request.ts';
import { useRetryAfter } from './problem.tsx';

/** What is wrong, and at which field. */
export type Refusal = { field: string; text: string };

export type FormState = {
  ref: RefObject<HTMLFormElement | null>;
  isBusy: boolean;
  /** What went wrong where it belongs to no field; null: nothing. */
  error: unknown;
  /** Seconds until it may be sent again. */
  left: number;
  refusal: Refusal | null;
  send: (event: SubmitEvent) => void;
};

/**
 * Sends a form once at a time. `explain` says which field an error belongs to, in its reader's language;
 * that field gets the focus.
 */
export function useForm(
  work: (values: FormData, form: HTMLFormElement) => Promise<unknown>,
  explain: (error: ApiError) => Refusal | null = () => null,
): FormState {
  const ref = useRef<HTMLFormElement>(null);
  const [isBusy, setIsBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const left = useRetryAfter(error);
  const refusal = error instanceof ApiError && left === 0 ? explain(error) : null;
  useLayoutEffect(() => {
    ref.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
  }, [error]);
  const run = async (form: HTMLFormElement) => {
    setIsBusy(true);
    setError(null);
    try {
      await work(new FormData(form), form);
    } catch (thrown) {
      setError(thrown);
    } finally {
      setIsBusy(false);
    }
  };
  const send = (event: SubmitEvent) => {
    event.preventDefault();
    if (!isBusy) void run(event.currentTarget as HTMLFormElement);
  };
  return { ref, isBusy, error: refusal ? null : error, left, refusal, send };
}

/** Whether the service found this member of the body wrong, or something in it. */
export function isWrong({ problems }: ApiError, member: string): boolean {
  const path = `/${member}`;
  return problems.some((each) => each.path === path || each.path.startsWith(`${path}/`));
}

export function textOf(form: FormData, name: string): string {
  const value = form.get(name);
  return typeof value === 'string' ? value : '';
}
