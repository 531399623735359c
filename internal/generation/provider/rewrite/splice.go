// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package rewrite

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// errForm: the body is no document of the form that is expected.
var errForm = errors.New("the body has another form")

// splicer replaces objects within a JSON document.
type splicer struct {
	body []byte
	in   *json.Decoder
	out  []byte
	// copied is how much of body out has.
	copied int
}

// Blocks replaces the objects in the list named blocks of each object in the list named turns of the body, as replace
// says; nil leaves one as it is. Everything else is the body's, byte for byte.
func Blocks(body []byte, turns, blocks string, replace func(block []byte) ([]byte, error)) ([]byte, error) {
	return newSplicer(body).run(turns, func(s *splicer) error {
		return s.object(s.within(blocks, func() error { return s.block(replace) }))
	})
}

// Elements is Blocks for the objects in a list of the body itself.
func Elements(body []byte, list string, replace func(element []byte) ([]byte, error)) ([]byte, error) {
	return newSplicer(body).run(list, func(s *splicer) error { return s.block(replace) })
}

func newSplicer(body []byte) *splicer {
	return &splicer{body: body, in: json.NewDecoder(bytes.NewReader(body))}
}

// run reads the body, each an element of its list of that name, and returns what has become of it.
func (s *splicer) run(list string, each func(*splicer) error) ([]byte, error) {
	if err := s.object(s.within(list, func() error { return each(s) })); err != nil {
		return nil, fmt.Errorf("reading the request: %w", err)
	}
	return append(s.out, s.body[s.copied:]...), nil
}

// within reads the fields of an object: one of that name as a list, the others over.
func (s *splicer) within(name string, each func() error) func(field string) error {
	return func(field string) error {
		if field == name {
			return s.list(each)
		}
		return s.skip()
	}
}

// object reads an object; each reads the value of one of its fields.
func (s *splicer) object(each func(field string) error) error {
	if open, err := s.in.Token(); err != nil || open != json.Delim('{') {
		return errors.Join(errForm, err)
	}
	for s.in.More() {
		field, err := s.in.Token()
		if err != nil {
			return err
		}
		if err := each(field.(string)); err != nil { // A decoder returns nothing else in front of a value of an object.
			return err
		}
	}
	_, err := s.in.Token()
	return err
}

// list reads a list; each reads one of its elements. A value that is no list but a plain one is read over: a content
// can be a text.
func (s *splicer) list(each func() error) error {
	open, err := s.in.Token()
	if err != nil {
		return err
	}
	switch open {
	case json.Delim('['):
	case json.Delim('{'):
		return errForm
	default:
		return nil
	}
	for s.in.More() {
		if err := each(); err != nil {
			return err
		}
	}
	_, err = s.in.Token()
	return err
}

func (s *splicer) skip() error {
	var value json.RawMessage
	return s.in.Decode(&value)
}

func (s *splicer) block(replace func([]byte) ([]byte, error)) error {
	var raw json.RawMessage
	if err := s.in.Decode(&raw); err != nil {
		return err
	}
	if raw[0] != '{' {
		return nil
	}
	replacement, err := replace(raw)
	if err != nil || replacement == nil {
		return err
	}
	end := int(s.in.InputOffset())
	s.out = append(append(s.out, s.body[s.copied:end-len(raw)]...), replacement...)
	s.copied = end
	return nil
}
