import type { ComponentChildren, RefObject, TargetedInputEvent } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { ApiError } from '../api/request.ts';
import { now } from '../app/now.ts';
import { t } from '../text/t.ts';
import { Icon } from './icon.tsx';
import { describeProblem, useRetryAfter } from './panel.tsx';

type FormProps = {
  form: FormState;
  class?: string;
  /** Something was typed or chosen. */
  onInput?: (event: TargetedInputEvent<HTMLFormElement>) => void;
  children: ComponentChildren;
};

/** A form that shows each error at its field, or at the top if it belongs to none. */
export function Form({ form, class: name = 'form', onInput, children }: FormProps) {
  const { ref, error, left, send } = form;
  return (
    <form ref={ref} class={name} onSubmit={send} onInput={onInput}>
      {error !== null && (
        <p class="form-error" role="alert">
          {left > 0 ? t('signIn.wait', { seconds: left }) : describeProblem(error)}
        </p>
      )}
      {children}
    </form>
  );
}

/** The input's type and attributes that help browsers. */
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

/** Attributes for an e-mail address, which has at most 254 characters (RFC 5321, 4.5.3.1.3). */
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
  /** Makes identifiers unique if a page has two forms. */
  prefix?: string;
  /** The input's type and attributes that help browsers. */
  input: InputOptions;
};

/** An input with its label, a hint, and its error. */
export function Field({ form, name, label, hint, children, prefix = '', input }: FieldProps) {
  const id = `${prefix}${name}`;
  const wrong = form.refusal?.field === name ? form.refusal.text : '';
  const described = [...(wrong ? [`${id}-wrong`] : []), ...(hint ? [`${id}-hint`] : [])].join(' ');
  const field = (
    <input
      // Preact types the attributes of each input type separately; these apply to all.
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

/** The submit button; disabled while the form is being sent, and until it may be sent again. */
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
  /** An error that belongs to no field; null if there is none. */
  error: unknown;
  /** Seconds until it may be sent again. */
  left: number;
  refusal: Refusal | null;
  send: (event: SubmitEvent) => void;
};

/**
 * Sends a form, one request at a time. `explain` says which field an error belongs to, in the reader's language. The
 * first field that is wrong gets the focus, also if `work` itself found that.
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
  const [sent, setSent] = useState(0);
  useLayoutEffect(() => focusWrong(ref.current), [sent]);
  const run = async (form: HTMLFormElement) => {
    setIsBusy(true);
    setError(null);
    try {
      await work(new FormData(form), form);
    } catch (thrown) {
      setError(thrown);
    } finally {
      setIsBusy(false);
      setSent((before) => before + 1);
    }
  };
  const send = (event: SubmitEvent) => {
    event.preventDefault();
    if (!isBusy) void run(event.currentTarget as HTMLFormElement);
  };
  return { ref, isBusy, error: refusal ? null : error, left, refusal, send };
}

/** Moves the focus to the first field that is wrong, if there is one. */
export function focusWrong(form: HTMLFormElement | null): void {
  const wrong = form?.querySelector<HTMLElement>('[aria-invalid="true"]');
  // What is folded away cannot have the focus.
  wrong?.closest('details')?.setAttribute('open', '');
  wrong?.focus();
}

/** Whether the service rejected this member of the body, or something in it. */
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
  /** A new password: shows the rules, and browsers offer to generate one. */
  isNew?: boolean;
  prefix?: string;
};

/** A password field whose text can be shown. */
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

/** The chosen duration. It begins when the form is sent, however long the dialog was open. */
export type AskedQuiet = { forMs: number; reason?: string };
export type Quiet = { untilTs: number; reason?: string };

/** As members of the request. */
export const quietFromNow = ({ forMs, ...rest }: AskedQuiet): Quiet => ({
  ...rest,
  untilTs: now() + forMs,
});

const hourMs = 3_600_000;
const lengths = [1, 4, 24, 168] as const;

type QuietFieldsProps = { onChange: (quiet: AskedQuiet) => void };

/** For how long notifications are suppressed, and why. */
export function QuietFields({ onChange }: QuietFieldsProps) {
  const [hours, setHours] = useState<(typeof lengths)[number]>(1);
  const [reason, setReason] = useState('');
  // Before the next key press: Enter right after the last letter must send that letter too.
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
