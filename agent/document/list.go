package document

// items returns the values of a list.
func (o Object) items(key string) ([]*node, bool) {
	n := o.ask(key)
	switch {
	case n == nil:
		return nil, false
	case n.kind != list:
		o.document.wrong(n, "is not a list; write a list")
		return nil, false
	}
	return n.items, true
}

// Objects returns a list of objects. An item that is none is a problem, and an
// object without keys stands for it, so that the others keep their index.
func (o Object) Objects(key string) ([]Object, bool) {
	items, ok := o.items(key)
	if !ok {
		return nil, false
	}
	objects := make([]Object, len(items))
	for i, n := range items {
		objects[i] = o.document.object(n)
	}
	return objects, true
}

// Texts returns a list of texts. An item that is none is a problem, and an empty
// text stands for it.
func (o Object) Texts(key string) ([]string, bool) {
	items, ok := o.items(key)
	if !ok {
		return nil, false
	}
	texts := make([]string, len(items))
	for i, n := range items {
		texts[i], _ = o.document.text(n)
	}
	return texts, true
}

// TextMap returns an object of texts under keys of any name.
func (o Object) TextMap(key string) (map[string]string, bool) {
	inner, ok := o.Object(key)
	if !ok {
		return nil, false
	}
	return inner.AllTexts(), true
}

// AllTexts returns the values of all keys, whatever their names, as texts: an
// object that is flat and names things that nobody knows beforehand, such as the
// versions of packages (AV-74).
func (o Object) AllTexts() map[string]string {
	texts := map[string]string{}
	if o.node == nil {
		return texts
	}
	for _, key := range o.node.keys {
		if written, ok := o.Text(key); ok {
			texts[key] = written
		}
	}
	return texts
}
