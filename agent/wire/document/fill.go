package document

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Fill reads the object into a struct by the names in the json tags of its fields, and
// notes each value that does not have the type of its field. The members of an embedded struct are
// the object's own. A missing member leaves its
// field unchanged; a member that is present replaces the whole field. For a pointer to an
// object, null means nil. For a list or map whose tag says omitempty, empty means absent.
// The tag "within" of a number has its minimum and maximum. A time is a text as in RFC 3339, and a
// json.RawMessage takes any value as it is.
func (o Object) Fill(into any) {
	value := reflect.ValueOf(into).Elem()
	for i := range value.NumField() {
		field := value.Type().Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous && name == "" {
			o.Fill(value.Field(i).Addr().Interface())
			continue
		}
		if !o.Has(name) {
			continue
		}
		value.Field(i).SetZero()
		o.fill(name, value.Field(i), field.Tag)
		if k := field.Type.Kind(); options == "omitempty" && (k == reflect.Slice || k == reflect.Map) && value.Field(i).Len() == 0 {
			value.Field(i).SetZero()
		}
	}
}

func (o Object) fill(key string, into reflect.Value, tag reflect.StructTag) {
	switch into.Interface().(type) {
	case time.Time:
		into.Set(reflect.ValueOf(o.time(key)))
		return
	case json.RawMessage:
		into.SetBytes(o.raw(key))
		return
	}
	switch into.Kind() {
	case reflect.String:
		text, _ := o.Text(key)
		into.SetString(text)
	case reflect.Bool:
		yes, _ := o.bool(key)
		into.SetBool(yes)
	case reflect.Int:
		into.SetInt(o.number(key, tag))
	case reflect.Uint64:
		into.SetUint(uint64(o.number(key, tag)))
	case reflect.Struct:
		if inner, ok := o.Nested(key); ok {
			inner.Fill(into.Addr().Interface())
		}
	case reflect.Pointer:
		o.fillPointer(key, into, tag)
	case reflect.Map:
		texts, _ := o.textMap(key)
		into.Set(reflect.ValueOf(texts))
	case reflect.Slice:
		o.fillList(key, into)
	default:
		panic(fmt.Sprintf("document: cannot fill %s of type %s", key, into.Type()))
	}
}

// fillPointer sets a pointer to the value of a member. If the member is null or is no
// object, the pointer is nil.
func (o Object) fillPointer(key string, into reflect.Value, tag reflect.StructTag) {
	value := reflect.New(into.Type().Elem())
	if value.Elem().Kind() != reflect.Struct {
		o.fill(key, value.Elem(), tag)
		into.Set(value)
		return
	}
	if o.Null(key) {
		return
	}
	if inner, ok := o.Nested(key); ok {
		inner.Fill(value.Interface())
		into.Set(value)
	}
}

func (o Object) number(key string, tag reflect.StructTag) int64 {
	from, to, _ := strings.Cut(tag.Get("within"), " ")
	least, err := strconv.ParseInt(from, 10, 64)
	most, err2 := strconv.ParseInt(to, 10, 64)
	if err != nil || err2 != nil {
		panic("document: " + key + " has no bounds")
	}
	n, _ := o.integer(key, least, most)
	return n
}

func (o Object) fillList(key string, into reflect.Value) {
	if into.Type().Elem().Kind() == reflect.String {
		if texts, ok := o.Texts(key); ok {
			into.Set(reflect.ValueOf(texts))
		}
		return
	}
	objects, ok := o.objects(key)
	if !ok {
		return
	}
	into.Set(reflect.MakeSlice(into.Type(), len(objects), len(objects)))
	for i, item := range objects {
		item.Fill(into.Index(i).Addr().Interface())
	}
}
