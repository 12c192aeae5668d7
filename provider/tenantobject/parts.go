package tenantobject

import "slices"

// Part is a part of an object that a resource may own: a list of the configuration, or the
// whole of a rollout. A T stands for an object and also for what a resource owns of one.
type Part[T any] struct {
	// Owned reports whether a resource owns the part.
	Owned func(T) bool
	// Same reports whether the part has the same meaning in both. One that is absent means the
	// same as an empty one.
	Same func(a, b T) bool
	// Copy sets the part to that of another object, Clear to nothing, which is owned.
	Copy  func(to *T, from T)
	Clear func(*T)
	// Conflicts lists what somebody else wrote in the part and a write would overwrite: the
	// server has neither what the resource owned nor what it wants.
	Conflicts func(prior, server, want T) []Conflict
}

// Parts are all parts of an object.
type Parts[T any] []Part[T]

// Merged returns the complete object to write: the wanted parts, and the server's others.
func (all Parts[T]) Merged(want, server T) T {
	for _, part := range all {
		if part.Owned(want) {
			part.Copy(&server, want)
		}
	}
	return server
}

// InSync reports whether the server has the wanted parts.
func (all Parts[T]) InSync(want, server T) bool {
	return all.each(func(part Part[T]) bool { return !part.Owned(want) || part.Same(want, server) })
}

// Unchanged reports whether a change of what is owned needs no write. A part that is no longer
// owned stays as it is.
func (all Parts[T]) Unchanged(prior, want T) bool {
	return all.each(func(part Part[T]) bool { return !part.Owned(want) || part.Owned(prior) && part.Same(want, prior) })
}

// Conflicts lists what a write of the wanted parts would overwrite.
func (all Parts[T]) Conflicts(prior, server, want T) (found []Conflict) {
	for _, part := range all {
		if part.Owned(want) && !part.Same(server, prior) && !part.Same(server, want) {
			found = append(found, part.Conflicts(prior, server, want)...)
		}
	}
	return found
}

// OwnsAll reports whether every part is owned.
func (all Parts[T]) OwnsAll(owned T) bool {
	return all.each(func(part Part[T]) bool { return part.Owned(owned) })
}

// Empty reports whether there is nothing in an object.
func (all Parts[T]) Empty(content T) bool {
	var none T
	return all.each(func(part Part[T]) bool { return part.Same(content, none) })
}

// Restricted returns of an object the parts that are owned.
func (all Parts[T]) Restricted(content, owned T) T {
	for _, part := range all {
		if part.Owned(owned) && part.Owned(content) {
			part.Copy(&owned, content)
		} else if part.Owned(owned) {
			part.Clear(&owned)
		}
	}
	return owned
}

// Emptied returns what is owned with nothing in it, as a deletion leaves it.
func (all Parts[T]) Emptied(owned T) T {
	for _, part := range all {
		if part.Owned(owned) {
			part.Clear(&owned)
		}
	}
	return owned
}

func (all Parts[T]) each(is func(Part[T]) bool) bool {
	return !slices.ContainsFunc(all, func(part Part[T]) bool { return !is(part) })
}
