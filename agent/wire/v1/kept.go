package v1

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/document"
)

// Kept is an object of the configuration as it is stored: what this version knows of it, and
// the members that a client of a newer version has had kept. The latter are returned with
// the object, stay when it is written by somebody who does not know them, and mean nothing.
type Kept[T any] struct {
	Value   T
	Unknown document.Unknown
}

// MarshalJSON returns the object with its unknown members in their places.
func (k Kept[T]) MarshalJSON() ([]byte, error) {
	text, err := knownJSON(k.Value)
	if err != nil {
		return nil, err
	}
	return k.Unknown.Into(text)
}

// UnmarshalJSON reads what MarshalJSON has written. It does not read the value by
// json.Unmarshal, which takes an unknown member for a known one that differs in case alone.
func (k *Kept[T]) UnmarshalJSON(text []byte) error {
	var value T
	d, err := document.Parse(document.JSON, text)
	if err != nil {
		return err
	}
	root := d.Root()
	root.Has(formatMember)
	root.Fill(&value)
	unknown := d.Unknown()
	if err := d.Err(); err != nil {
		return err
	}
	*k = Kept[T]{Value: value, Unknown: unknown}
	return nil
}

// formatMember is the number that the store writes into an object (package format).
const formatMember = "format"

// knownJSON is the JSON form of a value, without the escapes for HTML.
func knownJSON(value any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(value)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// Form is how the body of an object is read. With keep, members that
// this version does not know are kept; otherwise they are problems, and those that the
// object already has stay.
type Form[T any] struct {
	validate        func(T) Problems
	tidy, canonical func(T) T
}

// The forms of the objects.
var (
	OSUpgradeForm   = Form[OSUpgrade]{OSUpgrade.Validate, as[OSUpgrade], OSUpgrade.Canonical}
	RolloutForm     = Form[Rollout]{Rollout.Validate, as[Rollout], Rollout.Canonical}
	CalendarForm    = Form[Calendar]{Calendar.Validate, Calendar.withoutEmptyText, Calendar.Canonical}
	EnvironmentForm = Form[Environment]{Environment.Validate, as[Environment], Environment.Canonical}
	BudgetForm      = Form[Budget]{Budget.Validate, as[Budget], as[Budget]}
	ReleaseForm     = Form[Release]{Release.Validate, as[Release], Release.Canonical}
	WebhookForm     = Form[Webhook]{Webhook.Validate, as[Webhook], Webhook.Canonical}
	UserForm        = Form[User]{User.Validate, as[User], as[User]}
	ApproleForm     = Form[Approle]{Approle.Validate, as[Approle], as[Approle]}
	TenantForm      = Form[Tenant]{Tenant.Validate, as[Tenant], as[Tenant]}
	PolicyForm      = Form[Policy]{Policy.Validate, as[Policy], Policy.Canonical}
)

func as[T any](value T) T { return value }

// Decode returns the object of a body that replaces another one, in canonical form. The
// error is that of DecodeOSUpgrade.
func (f Form[T]) Decode(now Kept[T], contentType string, body []byte, keep bool) (Kept[T], error) {
	d, err := document.Parse(contentType, body)
	if err != nil {
		return Kept[T]{}, err
	}
	return f.fill(now, d, keep)
}

// Merge returns an object with the changes of a body (RFC 7396): a member that is null is
// removed, objects are merged, anything else is replaced. The error is that of Decode.
func (f Form[T]) Merge(now Kept[T], contentType string, body []byte, keep bool) (Kept[T], error) {
	if media, _, err := mime.ParseMediaType(contentType); err == nil && media == document.MergePatch {
		contentType = document.JSON
	}
	d, err := document.Parse(contentType, body)
	if err != nil {
		return Kept[T]{}, err
	}
	text, err := f.Text(now, keep)
	if err != nil {
		return Kept[T]{}, err
	}
	base, err := document.Parse(document.JSON, text)
	if err != nil {
		return Kept[T]{}, err
	}
	d.Over(base)
	return f.fill(now, d, keep)
}

// Text returns the JSON form of an object, with its unknown members if they are kept.
func (f Form[T]) Text(now Kept[T], keep bool) ([]byte, error) {
	if keep {
		return now.MarshalJSON()
	}
	return knownJSON(now.Value)
}

// fill returns the object of a document that follows another one. Further problems of the
// document may be known.
func (f Form[T]) fill(now Kept[T], d *document.Document, keep bool, wrong ...Problem) (Kept[T], error) {
	var next Kept[T]
	d.Root().Fill(&next.Value)
	if keep {
		if d.Root().Has(formatMember) {
			wrong = append(wrong, Problem{Field: formatMember, Message: "the store has a member of this name; it cannot be kept"})
		}
		next.Unknown = d.Unknown()
	}
	err := d.Err(append(wrong, f.validate(next.Value)...)...)
	if err == nil {
		next.Value = f.canonical(f.tidy(next.Value))
		err = f.carry(now, &next, keep)
	}
	if err != nil {
		return Kept[T]{}, err
	}
	return next, nil
}

// carry has the unknown members of an object stay in the one that follows it, unless its
// client knows of such members.
func (f Form[T]) carry(now Kept[T], next *Kept[T], keep bool) error {
	if !keep && !now.Unknown.None() {
		before, err := knownJSON(now.Value)
		if err != nil {
			return err
		}
		after, err := knownJSON(next.Value)
		if err != nil {
			return err
		}
		if next.Unknown, err = now.Unknown.Carried(before, after); err != nil {
			return err
		}
	}
	if next.Unknown.None() {
		return nil
	}
	text, err := next.MarshalJSON()
	if err == nil && len(text) > MaxBody {
		return Problems{{Message: fmt.Sprintf("the object is %d bytes long with the members that are kept for newer clients; use at most %d", len(text), MaxBody)}}
	}
	return err
}
