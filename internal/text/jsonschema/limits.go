// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package jsonschema

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Schemas and values are not trusted. The library validates a value as often as the schema refers to it, and computes
// numbers exactly, so that few bytes can cost any time and memory.
const (
	// maxDepth bounds the nesting of lists and objects.
	maxDepth = 100
	// maxNumber bounds the characters of a number, and its exponent.
	maxNumber = 400
	// maxWork bounds a validation, at about three seconds. visitWork is that of one value by one schema, and of a member.
	maxWork, visitWork = 100_000_000, 500
	// maxPatterns bounds the instructions of all regular expressions of a schema.
	maxPatterns = 100_000
)

// Decode decodes one JSON value, whose numbers are json.Number. It refuses numbers that neither Go nor the API server
// can store, and values that are nested too deeply.
func Decode(text string) (any, error) {
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("it is not one JSON value: %w", err)
	}
	return value, check(value, nil)
}

// check returns an error if the value at the place is outside of the limits.
func check(value any, at []string) error {
	switch value := value.(type) {
	case json.Number:
		if !inRange(string(value)) {
			return fmt.Errorf("%s is out of range: a number is between -1e308 and 1e308", pointer(at))
		}
		return nil
	case map[string]any, []any:
		if len(at) == maxDepth {
			return fmt.Errorf("more than %d lists and objects stand within each other", maxDepth)
		}
	}
	return each(value, func(name string, member any) error {
		return check(member, append(slices.Clip(at), name))
	})
}

// each calls do with the members of a value, until it fails.
func each(value any, do func(name string, member any) error) error {
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			if err := do(name, member); err != nil {
				return err
			}
		}
	case []any:
		for i, member := range value {
			if err := do(strconv.Itoa(i), member); err != nil {
				return err
			}
		}
	}
	return nil
}

func inRange(number string) bool {
	if _, err := strconv.ParseFloat(number, 64); err != nil || len(number) > maxNumber {
		return false
	}
	at := strings.IndexAny(number, "eE")
	if at < 0 {
		return true
	}
	exponent, err := strconv.Atoi(number[at+1:])
	return err == nil && max(exponent, -exponent) <= maxNumber
}

// work is the rest of the budget. The holder of the lock validates.
type work struct {
	sync.Mutex
	left int
	// patterns is the rest of maxPatterns.
	patterns int
}

// workExceeded is the panic that ends a validation: the library cannot be canceled.
type workExceeded struct{}

func (w *work) spend(n int) {
	if w.left -= n; w.left < 0 {
		panic(workExceeded{})
	}
}

// pattern is a regular expression whose matches cost work.
type pattern struct {
	*regexp.Regexp
	size int
	work *work
}

// MatchString implements jsonschema.Regexp.
func (p *pattern) MatchString(text string) bool {
	p.work.spend(p.size * (len(text) + 1) / 2)
	return p.Regexp.MatchString(text)
}

// compilePattern compiles a regular expression. One that Go does not support, such as a lookahead, or that is too large
// matches everything. The provider's model gets it anyway.
func (w *work) compilePattern(text string) (jsonschema.Regexp, error) {
	if parsed, err := syntax.Parse(text, syntax.Perl); err == nil {
		size := instructions(parsed)
		if w.patterns -= size; w.patterns >= 0 {
			if compiled, err := regexp.Compile(text); err == nil {
				return &pattern{compiled, size, w}, nil
			}
		}
	}
	// The library keys schemas by their patterns, so each has its own.
	return regexp.MustCompile(""), nil
}

// instructions estimates the size of the compiled expression.
func instructions(re *syntax.Regexp) int {
	n := 1 + len(re.Rune)
	for _, sub := range re.Sub {
		n += instructions(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return n
}

// bound makes each visit of the schema and its subschemas cost work. Each visit first calls the check of the format,
// which is the only hook of the library.
func (w *work) bound(s *jsonschema.Schema, seen map[*jsonschema.Schema]bool) error {
	if s == nil || seen[s] {
		return nil
	}
	seen[s] = true
	if s.DynamicRef != nil || s.RecursiveRef != nil {
		return errors.New("$dynamicRef and $recursiveRef are not supported; use $ref")
	}
	s.Format = w.format(s)
	for _, sub := range subschemas(s) {
		if err := w.bound(sub, seen); err != nil {
			return err
		}
	}
	return nil
}

// format is the format of the schema, whose check costs work.
func (w *work) format(s *jsonschema.Schema) *jsonschema.Format {
	format, cost := s.Format, visitWork+weight(s.Enum)
	if format == nil {
		format = &jsonschema.Format{Validate: func(any) error { return nil }}
	}
	if s.Const != nil {
		cost += weight(*s.Const)
	}
	return &jsonschema.Format{Name: format.Name, Validate: func(v any) error {
		w.spend(cost + members(v))
		if s.UniqueItems {
			w.spend(weight(v))
		}
		return format.Validate(v)
	}}
}

// members is the work of a value, without that within its members.
func members(value any) int {
	switch value := value.(type) {
	case map[string]any:
		return visitWork * len(value)
	case []any:
		return visitWork * len(value)
	case string:
		return len(value)
	}
	return 0
}

// weight is the work of comparing a value, or the values of an enum, with another one.
func weight(value any) int {
	if enum, ok := value.(*jsonschema.Enum); ok {
		if enum == nil {
			return 0
		}
		value = enum.Values
	}
	n := 20
	if text, ok := value.(string); ok {
		n += len(text)
	}
	_ = each(value, func(name string, member any) error {
		n += len(name) + weight(member)
		return nil
	})
	return n
}

// subschemas are the schemas that a schema applies.
func subschemas(s *jsonschema.Schema) []*jsonschema.Schema {
	all := slices.Concat([]*jsonschema.Schema{s.Ref, s.Not, s.If, s.Then, s.Else, s.PropertyNames, s.UnevaluatedProperties,
		s.Contains, s.Items2020, s.UnevaluatedItems, s.ContentSchema}, s.AllOf, s.AnyOf, s.OneOf, s.PrefixItems)
	all = slices.AppendSeq(all, maps.Values(s.Properties))
	all = slices.AppendSeq(all, maps.Values(s.PatternProperties))
	all = slices.AppendSeq(all, maps.Values(s.DependentSchemas))
	other := []any{s.AdditionalProperties, s.Items, s.AdditionalItems}
	for _, sub := range slices.AppendSeq(other, maps.Values(s.Dependencies)) {
		switch sub := sub.(type) {
		case *jsonschema.Schema:
			all = append(all, sub)
		case []*jsonschema.Schema:
			all = append(all, sub...)
		}
	}
	return all
}
