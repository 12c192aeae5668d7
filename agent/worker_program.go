//go:build worker

// A host changes its processors seldom, and its worker needs one: the runtime does not
// ask for them again and again.
//go:debug updatemaxprocs=0

package main
