import type { ComponentChildren, RefObject, TargetedInputEvent } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { ApiError } from '../api/request.ts';
import { now } from '../app/now.ts';
import { t } from '../text/t.ts';
import { Icon } from './icon.tsx';
import { describeProblem, useRetryAfter } from './panel.tsx';

type FormProps = { form: FormState; class?: string; children: ComponentChildren };

/** A form whose errors are said at their field, or above it where they belong to none. */
export function Form({ form, class: name = 'form', children }: FormProps) {
  const { ref, error, left, send } = form;
  return (
    <form ref={ref} class={name} onSubmit={send}>
      {error !== null && (
        <p class="form-error" role="alert">
          {left > 0 ? t('signIn.wait', { seconds: left }) : describeProblem(error)}
        </p>
      )}
      {children}
    </form>
  );
}

/** Its type, and what browsers need to help with it. */
type InputOptions = {
  type?: 'text' | 'email' | 'url' | 'password';
  defaultValue?: string;
  value?: string;
  onInput?: (event: TargetedInputEvent<HTMLInputElement>) => void;
  list?: string;
  autocomplete: string;
  autocapitalize?: 'off';
  spellcheck?: false;
  required?: boolean;
  autofocus?: boolean;
  minLength?: number;
  maxLength?: number;
  placeholder?: string | undefined;
};

/** What an e-mail address is typed into; an address has at most 254 characters (RFC 5321, 4.5.3.1.3). */
export const emailInput = {
  type: 'email',
  autocapitalize: 'off',
  spellcheck: false,
  maxLength: 254,
  required: true,
} as const satisfies Omit<InputOptions, 'autocomplete'>;

type FieldProps = {
  form: FormState;
  name: string;
  label: string;
  hint?: string;
  /** Beside the input, such as a button. */
  children?: ComponentChildren;
  /** Makes identifiers differ where a page has two forms. */
  prefix?: string;
  /** Its type and what browsers need to help with it. */
  input: InputOptions;
};

/** An input with its name, a hint, and what is wrong with it. */
export function Field({ form, name, label, hint, children, prefix = '', input }: FieldProps) {
  const id = `${prefix}${name}`;
  const wrong = form.refusal?.field === name ? form.refusal.text : '';
  const described = [...(wrong ? [`${id}-wrong`] : []), ...(hint ? [`${id}-hint`] : [])].join(' ');
  const field = (
    <input
      // Each type has attributes of its own to preact; these are of all.
      {...(input as { type: 'text' })}
      id={id}
      name={name}
      aria-invalid={wrong === '' ? undefined : 'true'}
      aria-describedby={described === '' ? undefined : described}
    />
  );
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children ? (
        <div class="with-button">
          {field}
          {children}
        </div>
      ) : (
        field
      )}
      {wrong !== '' && (
        <p class="field-wrong" id={`${id}-wrong`} role="alert">
          <Icon name="warn" />
          {wrong}
        </p>
      )}
      {hint !== undefined && (
        <p class="fine" id={`${id}-hint`}>
          {hint}
        </p>
      )}
    </div>
  );
}

/** The button that sends it: not while it is sent, nor before it may be sent again. */
export function Submit({ form, children }: { form: FormState; children: ComponentChildren }) {
  return (
    <button type="submit" class="button button-main" disabled={form.isBusy || form.left > 0}>
      {children}
    </button>
  );
}

/** What is wrong, and at which field. */
export type Refusal = { field: string; text: string };

type FormState = {
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

type PasswordProps = {
  form: FormState;
  name?: string;
  label: string;
  /** A password that is chosen here: what it needs is said, and browsers offer to make one. */
  isNew?: boolean;
  prefix?: string;
};

/** A password that can be looked at. */
export function PasswordField({ form, name = 'password', label, isNew, prefix }: PasswordProps) {
  const [isShown, setIsShown] = useState(false);
  return (
    <Field
      form={form}
      name={name}
      label={label}
      {...(prefix === undefined ? {} : { prefix })}
      {...(isNew ? { hint: t('signIn.passwordHint') } : {})}
      input={{
        type: isShown ? 'text' : 'password',
        autocomplete: isNew ? 'new-password' : 'current-password',
        autocapitalize: 'off',
        spellcheck: false,
        required: true,
        ...(isNew ? { minLength: 8, maxLength: 128 } : {}),
      }}
    >
      <button
        type="button"
        class="button"
        aria-label={t(isShown ? 'signIn.hidePassword' : 'signIn.showPassword')}
        onClick={() => setIsShown(!isShown)}
      >
        {t(isShown ? 'common.hide' : 'common.reveal')}
      </button>
    </Field>
  );
}

/** As it is chosen: it begins when it is sent, however long the dialog was open. */
export type AskedQuiet = { forMs: number; reason?: string };
export type Quiet = { untilTs: number; reason?: string };

/** As it is sent. */
export const quietFromNow = ({ forMs, ...rest }: AskedQuiet): Quiet => ({
  ...rest,
  untilTs: now() + forMs,
});

const hourMs = 3_600_000;
const lengths = [1, 4, 24, 168] as const;

type QuietFieldsProps = { onChange: (quiet: AskedQuiet) => void };

/** For how long nobody is told, and why. */
export function QuietFields({ onChange }: QuietFieldsProps) {
  const [hours, setHours] = useState<(typeof lengths)[number]>(1);
  const [reason, setReason] = useState('');
  // Before the next key: Enter right after the last letter sends that too.
  useLayoutEffect(() => {
    const text = reason.trim();
    onChange({ forMs: hours * hourMs, ...(text === '' ? {} : { reason: text }) });
  }, [hours, reason]);
  return (
    <>
      <fieldset class="choices">
        <legend>{t('quiet.for')}</legend>
        {lengths.map((each) => (
          <label key={each} class="choice">
            <input
              type="radio"
              name="hours"
              checked={hours === each}
              onChange={() => setHours(each)}
            />
            <span>{t(`quiet.${each}h`)}</span>
          </label>
        ))}
      </fieldset>
      <label class="field">
        <span>{t('quiet.reason')}</span>
        <input
          name="reason"
          value={reason}
          maxLength={200}
          placeholder={t('quiet.reasonPlaceholder')}
          onInput={({ currentTarget }) => setReason(currentTarget.value)}
        />
      </label>
    </>
  );
}
