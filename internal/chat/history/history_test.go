// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"reflect"
	"slices"
	"testing"

	"parley.dev/parley/api/v1beta1"
)

func user(name, parent string, index int64) Node {
	return Node{Name: name, Placed: true, Parent: parent, Index: index}
}

func reply(name, parent string, index int64) Node {
	n := user(name, parent, index)
	return n
}

func lookupIn(nodes ...Node) func(string) (Node, bool) {
	return func(name string) (Node, bool) {
		i := slices.IndexFunc(nodes, func(n Node) bool { return n.Name == name })
		if i < 0 {
			return Node{}, false
		}
		return nodes[i], true
	}
}

func names(chain []Node) []string {
	out := []string{}
	for _, n := range chain {
		out = append(out, n.Name)
	}
	return out
}

func TestWalkReturnsWholeChainOrError(t *testing.T) {
	u0, a1, u2 := user("u0", "", 0), reply("a1", "u0", 1), user("u2", "a1", 2)
	unplaced := Node{Name: "u2"}
	tail := []v1beta1.CommittedMessage{{Message: "u2", UID: "uid", Parent: "a1", Position: 2, HistoryVersion: 3}}
	ofTail := Node{Name: "u2", UID: "uid"}
	follows := reply("a3", "u2", 3)
	follows.Follows = tail
	cases := []struct {
		name  string
		ref   Ref
		nodes []Node
		want  []string
		err   error
	}{
		{"no history is an empty chain", Ref{}, nil, []string{}, nil},
		{"the oldest comes first", Ref{Head: "u2", Length: 3}, []Node{u2, a1, u0}, []string{"u0", "a1", "u2"}, nil},
		{"what is not in the chain does not matter", Ref{Head: "a1", Length: 2}, []Node{u0, a1, u2}, []string{"u0", "a1"},
			nil},
		{"the chat places what no reply follows", Ref{Head: "u2", Length: 3, Tail: tail}, []Node{u0, a1, ofTail},
			[]string{"u0", "a1", "u2"}, nil},
		{"a reply places what it follows", Ref{Head: "a3", Length: 4}, []Node{u0, a1, ofTail, follows},
			[]string{"u0", "a1", "u2", "a3"}, nil},
		{"a commit wins over an outdated place", Ref{Head: "u2", Length: 3, Tail: tail},
			[]Node{u0, a1, {Name: "u2", UID: "uid", Placed: true, Parent: "gone", Index: 7}},
			[]string{"u0", "a1", "u2"}, nil},
		{"another message of the name", Ref{Head: "a3", Length: 4}, []Node{u0, a1, {Name: "u2", UID: "new"}, follows}, nil,
			&UnplacedError{"u2"}},
		{"a message that nobody places", Ref{Head: "u2", Length: 3}, []Node{u0, a1, unplaced}, nil, &UnplacedError{"u2"}},
		{"a missing parent", Ref{Head: "u2", Length: 3}, []Node{u2, u0}, nil, &MissingError{"u2", "a1"}},
		{"a missing head", Ref{Head: "u2", Length: 3}, []Node{a1, u0}, nil, &MissingError{"", "u2"}},
		{"a circle", Ref{Head: "b", Length: 5}, []Node{reply("b", "a", 4), reply("a", "b", 3)}, nil, &CycleError{"b"}},
		{"a message that is its own parent", Ref{Head: "a", Length: 1}, []Node{reply("a", "a", 0)}, nil, &CycleError{"a"}},
		{"a chain that is too long", Ref{Head: "a1", Length: 1}, []Node{reply("a1", "u0", 0), u0}, nil, &LengthError{1, 2}},
		{"a chain that is too short", Ref{Head: "u2", Length: 3}, []Node{u2, reply("a1", "", 1)}, nil, &LengthError{3, 2}},
		{"a length without a head", Ref{Length: 1}, nil, nil, &LengthError{1, 0}},
		{"a head without a length", Ref{Head: "u0"}, []Node{u0}, nil, &LengthError{0, 1}},
		{"a message that says another index", Ref{Head: "a1", Length: 2}, []Node{reply("a1", "u0", 5), u0}, nil,
			&IndexError{"a1", 1, 5}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			chain, err := Walk(c.ref, lookupIn(c.nodes...), nil)
			if !reflect.DeepEqual(err, c.err) {
				t.Fatalf("got error %v, want %v", err, c.err)
			}
			if err == nil && !slices.Equal(names(chain), c.want) {
				t.Errorf("got %v, want %v", names(chain), c.want)
			}
			if err != nil && chain != nil {
				t.Errorf("got part of a chain besides the error: %v", names(chain))
			}
		})
	}
}

func TestWalkStopsAtKnownMessageAndChecksIt(t *testing.T) {
	nodes := []Node{user("u0", "", 0), reply("a1", "u0", 1), user("u2", "a1", 2), reply("a3", "u2", 3)}
	looked := 0
	lookup := func(name string) (Node, bool) {
		looked++
		return lookupIn(nodes...)(name)
	}
	knowsA1 := func(n Node) bool { return n.Name == "a1" }
	chain, err := Walk(Ref{Head: "a3", Length: 4}, lookup, knowsA1)
	if err != nil || !slices.Equal(names(chain), []string{"u2", "a3"}) || looked != 3 {
		t.Errorf("got %v, %v after %d look-ups, want u2 and a3 after 3", names(chain), err, looked)
	}
	nodes[1].Index = 0
	if _, err := Walk(Ref{Head: "a3", Length: 4}, lookup, knowsA1); !reflect.DeepEqual(err, &IndexError{"a1", 1, 0}) {
		t.Errorf("the known message has moved: got %v", err)
	}
}

func TestWalkFromIndexIgnoresOlderMessages(t *testing.T) {
	nodes := []Node{reply("a1", "u0", 1), user("u2", "a1", 2), reply("a3", "u2", 3)} // u0 is gone.
	for _, c := range []struct {
		name string
		ref  Ref
		want []string
		err  error
	}{
		{"what is older may be missing", Ref{Head: "a3", Length: 4, From: 1}, []string{"a1", "u2", "a3"}, nil},
		{"the newest alone", Ref{Head: "a3", Length: 4, From: 3}, []string{"a3"}, nil},
		{"a context without messages", Ref{Head: "a3", Length: 4, From: 4}, []string{}, nil},
		{"from the first", Ref{Head: "a3", Length: 4}, nil, &MissingError{"a1", "u0"}},
		{"another index", Ref{Head: "a3", Length: 5, From: 2}, nil, &IndexError{"a3", 4, 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			chain, err := Walk(c.ref, lookupIn(nodes...), nil)
			if !reflect.DeepEqual(err, c.err) || err == nil && !slices.Equal(names(chain), c.want) {
				t.Errorf("got %v and %v, want %v and %v", names(chain), err, c.want, c.err)
			}
		})
	}
	short := []Node{reply("b", "", 3)}
	if _, err := Walk(Ref{Head: "b", Length: 4, From: 1}, lookupIn(short...), nil); !reflect.DeepEqual(err,
		&LengthError{4, 1}) {
		t.Errorf("a chain that ends before the index: %v", err)
	}
}

func TestErrorsNameTheMessages(t *testing.T) {
	for want, err := range map[string]error{
		"message a, the head of the history, does not exist":           &MissingError{"", "a"},
		"message a, the parent of b, does not exist":                   &MissingError{"b", "a"},
		"message a does not say which message is its parent":           &UnplacedError{"a"},
		"message a is its own ancestor":                                &CycleError{"a"},
		"the history has 2 messages and should have 3":                 &LengthError{3, 2},
		"the history has more than the 3 messages that it should have": &LengthError{3, 4},
		"message a says that it has index 5, and has 1":                &IndexError{"a", 1, 5},
	} {
		if err.Error() != want {
			t.Errorf("got %q, want %q", err, want)
		}
	}
}
