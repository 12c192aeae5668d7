package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// selection is a value of whose JSON form the selected fields alone are written. Those that
// are not selected are never encoded, so a part of a long list takes less time than the
// whole.
type selection struct {
	fields fields
	value  any
}

// MarshalJSON returns the selected fields, in the order of the whole.
func (s selection) MarshalJSON() ([]byte, error) {
	v := reflect.ValueOf(s.value)
	if !v.IsValid() {
		return []byte("null"), nil
	}
	var out selected
	out.encoder = json.NewEncoder(&out.text)
	out.encoder.SetEscapeHTML(false)
	err := s.fields.writer(v.Type())(&out, v)
	return out.text.Bytes(), err
}

// selected is the text of what is selected.
type selected struct {
	text    bytes.Buffer
	encoder *json.Encoder
}

// whole writes a value as package json does.
func (o *selected) whole(v reflect.Value) error {
	if v.CanAddr() { // The methods of its pointer count, too.
		v = v.Addr()
	}
	return o.encode(v.Interface())
}

func (o *selected) encode(value any) error {
	if err := o.encoder.Encode(value); err != nil {
		return err
	}
	o.text.Truncate(o.text.Len() - 1) // The encoder ends each value with a new line.
	return nil
}

// writer writes the selected fields of a value of one type.
type writer func(*selected, reflect.Value) error

// writer returns the writer of a type. It looks at the type once, for all entries of a list.
func (f fields) writer(t reflect.Type) writer {
	switch {
	case f == nil:
		return (*selected).whole
	case t.Kind() == reflect.Pointer && !t.Implements(marshaler):
		return orNull(f.writer(t.Elem()), reflect.Value.Elem)
	case t.Implements(marshaler), reflect.PointerTo(t).Implements(marshaler):
		return f.cut
	case t.Kind() == reflect.Slice:
		return orNull(listOf(f.writer(t.Elem())), func(v reflect.Value) reflect.Value { return v })
	case t.Kind() == reflect.Struct:
		return f.object(t)
	}
	return f.cut
}

// marshaler is the interface of what decides itself how it is written.
var marshaler = reflect.TypeFor[json.Marshaler]()

// orNull writes null for nil, and else what is in the value.
func orNull(write writer, in func(reflect.Value) reflect.Value) writer {
	return func(o *selected, v reflect.Value) error {
		if v.IsNil() {
			o.text.WriteString("null")
			return nil
		}
		return write(o, in(v))
	}
}

func listOf(write writer) writer {
	return func(o *selected, v reflect.Value) error {
		o.text.WriteByte('[')
		for i := range v.Len() {
			if i > 0 {
				o.text.WriteByte(',')
			}
			if err := write(o, v.Index(i)); err != nil {
				return err
			}
		}
		o.text.WriteByte(']')
		return nil
	}
}

// member is a field of a struct that is selected.
type member struct {
	// start is its name as JSON, with the colon.
	start   string
	index   []int
	omitted func(reflect.Value) bool
	write   writer
}

// object returns the writer of a struct.
func (f fields) object(t reflect.Type) writer {
	var all []member
	for _, field := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		below, wanted := f[name]
		if name == "" || name == "-" || !wanted {
			continue
		}
		quoted, _ := json.Marshal(name) //nolint:errchkjson // A text has a JSON form.
		all = append(all, member{start: string(quoted) + ":", index: field.Index, omitted: omitted(strings.Split(options, ",")), write: below.writer(field.Type)})
	}
	return func(o *selected, v reflect.Value) error {
		o.text.WriteByte('{')
		first := true
		for _, m := range all {
			value, err := v.FieldByIndexErr(m.index)
			if err != nil || m.omitted(value) { // What it is embedded in may be nil.
				continue
			}
			if !first {
				o.text.WriteByte(',')
			}
			first = false
			o.text.WriteString(m.start)
			if err := m.write(o, value); err != nil {
				return err
			}
		}
		o.text.WriteByte('}')
		return nil
	}
}

// omitted returns whether package json omits a value, by the options of its tag.
func omitted(options []string) func(reflect.Value) bool {
	empty, zero := slices.Contains(options, "omitempty"), slices.Contains(options, "omitzero")
	return func(v reflect.Value) bool {
		return empty && isEmpty(v) || zero && isZero(v)
	}
}

func isEmpty(v reflect.Value) bool {
	switch v.Kind() { //nolint:exhaustive // Structs are never empty.
	case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}

func isZero(v reflect.Value) bool {
	if z, ok := v.Interface().(interface{ IsZero() bool }); ok && (v.Kind() != reflect.Pointer || !v.IsNil()) {
		return z.IsZero()
	}
	return v.IsZero()
}

// cut writes the selected fields of a value whose members are known only once it is encoded.
func (f fields) cut(o *selected, v reflect.Value) error {
	begin := o.text.Len()
	if err := o.whole(v); err != nil {
		return err
	}
	whole := json.NewDecoder(bytes.NewReader(bytes.Clone(o.text.Bytes()[begin:])))
	whole.UseNumber()
	o.text.Truncate(begin)
	return f.copy(o, whole)
}

// copy writes the selected fields of the next value of a JSON text.
func (f fields) copy(o *selected, whole *json.Decoder) error {
	if f == nil {
		var text json.RawMessage
		err := whole.Decode(&text)
		o.text.Write(text)
		return err
	}
	token, err := whole.Token()
	if err != nil {
		return err
	}
	delimiter, ok := token.(json.Delim)
	if !ok {
		return o.encode(token)
	}
	o.text.WriteString(delimiter.String())
	separator := ""
	for whole.More() {
		below := f
		if delimiter == '{' {
			name, err := whole.Token()
			if err != nil {
				return err
			}
			var wanted bool
			if below, wanted = f[fmt.Sprint(name)]; !wanted {
				if err := whole.Decode(new(json.RawMessage)); err != nil {
					return err
				}
				continue
			}
			o.text.WriteString(separator)
			if err := o.encode(name); err != nil {
				return err
			}
			separator = ":"
		}
		o.text.WriteString(separator)
		if err := below.copy(o, whole); err != nil {
			return err
		}
		separator = ","
	}
	end, err := whole.Token()
	fmt.Fprint(&o.text, end)
	return err
}
