// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package parameters reads the parameters of a workspace template, and checks values for them. It is pure, and links no
// kind of Kubernetes.
//
// A template declares its parameters in an annotation. A value is set as a whole, and only at the places of its
// parameter: it cannot become another field, a further argument, or a part of a command.
package parameters

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"parley.dev/parley/api/v1beta1"
)

// maxParameters bounds the parameters of a template, and maxAllowed the allowed values of one.
const maxParameters, maxAllowed = 64, 256

// parameterName matches the names that the API allows in chats.
var parameterName = regexp.MustCompile(`^[A-Za-z][-_A-Za-z0-9]*$`)

// Type of the values of a parameter.
type Type string

// The types.
const (
	String   Type = "string" // any text; the default
	Integer  Type = "integer"
	Boolean  Type = "boolean"
	Quantity Type = "quantity" // an amount of a resource, such as 500m or 2Gi
)

// Parameter of a template, as its annotation declares it.
type Parameter struct {
	Name string `json:"name"`
	// Description for people and models.
	Description string `json:"description,omitempty"`
	// Type of its values; default: string.
	Type Type `json:"type,omitempty"`
	// Default value; nil: a value is required.
	Default *string `json:"default,omitempty"`
	// Allowed values; empty: all of the type.
	Allowed []string `json:"allowed,omitempty"`
	Places  []Place  `json:"places"`
}

// Place of the value of a parameter: "image", "env/NAME", "requests/RESOURCE", "limits/RESOURCE", "nodeSelector/KEY",
// "label/KEY" or "storage". Images, resources and variables are those of the workspace's container.
type Place string

// kinds of places, with whether they have a name, and whether the template must list the values, because they decide
// what runs, and where.
var kinds = map[string]struct{ named, listed bool }{
	"image": {false, true}, "env": {true, false}, "requests": {true, false}, "limits": {true, false},
	"nodeSelector": {true, true}, "label": {true, true}, "storage": {false, false},
}

// Split splits the place into its kind and its name.
func (p Place) Split() (kind, name string) {
	kind, name, _ = strings.Cut(string(p), "/")
	return kind, name
}

// Of reads the parameters from the annotations of a template.
func Of(annotations map[string]string) ([]Parameter, error) {
	text := annotations[v1beta1.AnnotationParameters]
	if text == "" {
		return nil, nil
	}
	var all []Parameter
	if err := yaml.UnmarshalStrict([]byte(text), &all); err != nil {
		return nil, fmt.Errorf("annotation %s is no list of parameters: %w", v1beta1.AnnotationParameters, err)
	}
	if len(all) > maxParameters {
		return nil, fmt.Errorf("annotation %s has %d parameters; a template has at most %d",
			v1beta1.AnnotationParameters, len(all), maxParameters)
	}
	for i := range all {
		p := &all[i]
		p.Type = cmp.Or(p.Type, String)
		if find(all[:i], p.Name) != nil {
			return nil, fmt.Errorf("parameter %q is declared twice", p.Name)
		}
		if err := p.check(); err != nil {
			return nil, fmt.Errorf("parameter %q: %w", p.Name, err)
		}
	}
	return all, nil
}

// find returns the parameter of a name; nil: there is none.
func find(all []Parameter, name string) *Parameter {
	if i := slices.IndexFunc(all, func(p Parameter) bool { return p.Name == name }); i >= 0 {
		return &all[i]
	}
	return nil
}

// check validates a declaration.
func (p *Parameter) check() error {
	switch {
	case len(p.Name) > 63 || !parameterName.MatchString(p.Name):
		return fmt.Errorf("its name has 1 to 63 letters, digits, - and _, and begins with a letter")
	case !slices.Contains([]Type{String, Integer, Boolean, Quantity}, p.Type):
		return fmt.Errorf("its type %q is none of string, integer, boolean, quantity", p.Type)
	case len(p.Places) == 0:
		return fmt.Errorf("it has no places: say where its value goes, such as env/NAME")
	case len(p.Allowed) > maxAllowed:
		return fmt.Errorf("it allows %d values; at most %d", len(p.Allowed), maxAllowed)
	}
	for _, place := range p.Places {
		if err := p.checkPlace(place); err != nil {
			return err
		}
	}
	return p.checkValues()
}

// checkValues validates the values of a declaration.
func (p *Parameter) checkValues() error {
	for _, value := range p.Allowed {
		if err := p.fits(value); err != nil {
			return fmt.Errorf("allowed: %w", err)
		}
	}
	if p.Default != nil {
		if err := p.Check(*p.Default); err != nil {
			return fmt.Errorf("default: %w", err)
		}
	}
	return nil
}

func (p *Parameter) checkPlace(place Place) error {
	kind, name := place.Split()
	k, known := kinds[kind]
	switch {
	case !known:
		return fmt.Errorf("place %q is none of %s", place, strings.Join(slices.Sorted(maps.Keys(kinds)), ", "))
	case k.named != (name != ""):
		return fmt.Errorf("place %q: image and storage have no name, the others have one, such as env/NAME", place)
	case k.listed && len(p.Allowed) == 0:
		return fmt.Errorf("place %q decides what runs, or where: list the values in allowed", place)
	case slices.Contains([]string{"requests", "limits", "storage"}, kind) && p.Type != Quantity && p.Type != Integer:
		return fmt.Errorf("place %q takes a quantity: set type: quantity", place)
	case kind == "env":
		return checkVariable(place, name)
	}
	return nil
}

func checkVariable(place Place, name string) error {
	switch {
	case len(validation.IsEnvVarName(name)) > 0:
		return fmt.Errorf("place %q: %q is no name of an environment variable", place, name)
	case strings.HasPrefix(name, "PARLEY_"):
		return fmt.Errorf("place %q: the agent sets %s itself", place, name)
	}
	return nil
}

// Check validates a value of the parameter.
func (p *Parameter) Check(value string) error {
	if err := p.fits(value); err != nil {
		return err
	}
	if len(p.Allowed) > 0 && !slices.Contains(p.Allowed, value) {
		return fmt.Errorf("%q is not among the allowed values: %s", value, strings.Join(p.Allowed, ", "))
	}
	return nil
}

// fits checks that a value is of the type.
func (p *Parameter) fits(value string) error {
	var err error
	switch p.Type {
	case Integer:
		_, err = strconv.ParseInt(value, 10, 64)
	case Boolean:
		if value != "true" && value != "false" {
			err = fmt.Errorf("it is neither true nor false")
		}
	case Quantity:
		_, err = resource.ParseQuantity(value)
	}
	if err != nil {
		return fmt.Errorf("%q is no %s", value, p.Type)
	}
	if strings.ContainsRune(value, 0) {
		return fmt.Errorf("%q has a NUL", value)
	}
	return nil
}

// Values of all parameters: those of the chat, and else the defaults.
func Values(declared []Parameter, set []v1beta1.WorkspaceParameter) (map[string]string, error) {
	values := map[string]string{}
	for _, v := range set {
		p := find(declared, v.Name)
		if p == nil {
			return nil, fmt.Errorf("there is no parameter %q; the template has: %s", v.Name, names(declared))
		}
		if err := p.Check(v.Value); err != nil {
			return nil, fmt.Errorf("parameter %q: %w", v.Name, err)
		}
		values[v.Name] = v.Value
	}
	for _, p := range declared {
		if _, ok := values[p.Name]; ok {
			continue
		}
		if p.Default == nil {
			return nil, fmt.Errorf("parameter %q has no default: give a value for it", p.Name)
		}
		values[p.Name] = *p.Default
	}
	return values, nil
}

func names(declared []Parameter) string {
	var all []string
	for _, p := range declared {
		all = append(all, p.Name)
	}
	return cmp.Or(strings.Join(all, ", "), "none")
}
