import type { ComponentChildren, TargetedInputEvent } from 'preact';
import { t } from '../text/t.ts';
import { Icon } from './icon.tsx';
import { describeProblem } from './problem.tsx';
import type { FormState } from './use-form.ts';

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
export type InputOptions = {
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
