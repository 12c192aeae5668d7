package store

import (
	"fmt"
	"testing"
)

// TestRecent checks when an object that was read is kept, and when it is not any more.
func TestRecent(t *testing.T) {
	t.Parallel()
	config, other := configOf("acme"), configOf("other")
	old, newer := recentObject{value: "old", number: 5, size: 10}, recentObject{value: "new", number: 6, size: 10}
	for name, row := range map[string]struct {
		do   func(r *recent)
		want any
	}{
		"read":                                {func(r *recent) { r.keep(config, old, r.reading()) }, "old"},
		"never read":                          {func(*recent) {}, nil},
		"another tenant's":                    {func(r *recent) { r.keep(other, old, r.reading()) }, nil},
		"read, and written by this process":   {func(r *recent) { r.keep(config, old, r.reading()); r.drop(config, 0) }, nil},
		"read, and written by another":        {func(r *recent) { r.keep(config, old, r.reading()); r.drop(config, 6) }, nil},
		"read, and seen by the watch":         {func(r *recent) { r.keep(config, old, r.reading()); r.drop(config, 5) }, "old"},
		"written while it was read":           {func(r *recent) { begun := r.reading(); r.drop(config, 0); r.keep(config, old, begun) }, nil},
		"written by another while it is read": {func(r *recent) { begun := r.reading(); r.drop(config, 6); r.keep(config, old, begun) }, nil},
		"a slow read of before": {func(r *recent) {
			begun := r.reading()
			r.keep(config, newer, r.reading())
			r.drop(config, 6) // The watch sees what is kept.
			r.keep(config, old, begun)
		}, "new"},
		"no watch":       {func(r *recent) { r.unwatched("acme"); r.keep(config, old, r.reading()) }, nil},
		"the watch ends": {func(r *recent) { r.keep(config, old, r.reading()); r.unwatched("acme") }, nil},
		"the watch ends while it is read": {func(r *recent) {
			begun := r.reading()
			r.unwatched("acme")
			r.watched("acme")
			r.keep(config, old, begun)
		}, nil},
		"one of two watches ends": {func(r *recent) { r.watched("acme"); r.keep(config, old, r.reading()); r.unwatched("acme") }, "old"},
		"the watch of another ends": {func(r *recent) {
			r.watched("other")
			r.keep(config, old, r.reading())
			r.unwatched("other")
		}, "old"},
		"too much": {func(r *recent) {
			r.keep(config, old, r.reading())
			r.watched("other")
			r.keep(other, recentObject{value: "large", number: 7, size: maxRecent - 1}, r.reading())
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r recent
			r.watched("acme")
			row.do(&r)
			if got, _, kept := r.get(config); got != row.want || kept != (row.want != nil) {
				t.Errorf("kept is %v, %t; want %v", got, kept, row.want)
			}
			size := 0
			for _, o := range r.objects {
				size += o.size
			}
			if r.size != size || size > maxRecent {
				t.Errorf("%d bytes are counted, %d are kept", r.size, size)
			}
		})
	}
}

// TestRecentIsBounded checks that the objects of many tenants do not fill the memory.
func TestRecentIsBounded(t *testing.T) {
	t.Parallel()
	var r recent
	for i := range 1000 {
		tenant := fmt.Sprintf("t%d", i)
		r.watched(tenant)
		r.keep(configOf(tenant), recentObject{number: 1, size: maxRecent / 100}, r.reading())
		if r.size > maxRecent || len(r.objects) > 100 {
			t.Fatalf("after %d tenants %d objects of %d bytes are kept", i, len(r.objects), r.size)
		}
	}
}
