"""Placeholders for objects of the program's classes, and for built-in classes, that a code test
passes to the program, and the sent form of objects of the prelude's classes, which both have.

A judge has none of the program's classes. In a test, a capitalized name that is bound nowhere else
denotes one of them: it becomes a `Class`, which makes `Made` objects. Such an object is only the
call that made it and the attributes that were set; these are sent, and the program's process makes
the object from them. A built-in class such as `int` is sent by its name. Standard library only:
loaded by path in the zygote.

Invariant: in the judge they have no values. They cannot be compared, and a test that has used a
class without passing any object to the program has not passed.
"""

import builtins
import enum
from typing import Any

MARK = ...
"""`(MARK, n)` represents object n in sent values; no plain value contains MARK."""

TEST_MODULE = "test"
"""Module of the classes that the prelude of a test defines, of which the program has its own."""
_PLAIN: tuple[Any, ...] = (list, dict, set, frozenset, tuple, str, bytes, int, float)

Entry = tuple[str, Any, Any, Any]
"""Class, arguments, keywords and attributes of one object; for a class itself, its name alone."""

Sent = tuple[Any, list[Entry]]
"""Values in the form in which they are sent, and the objects and classes that they hold."""


def is_built_in(value: Any) -> bool:
    """Whether a value is a built-in class, under its own name."""
    return isinstance(value, type) and getattr(builtins, value.__name__, None) is value


class _NoValue:
    __hash__ = None  # type: ignore[assignment]

    def _refuse(self, *_: Any) -> Any:
        raise TypeError("what is made of a class of the program has no value outside of it")

    __bool__ = __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse  # type: ignore[assignment]


class Made(_NoValue):
    """An object that the program's process will make. Attributes that were set can be read."""

    def __init__(self, name: str, arguments: tuple[Any, ...], keywords: dict[str, Any]):
        self.__dict__["(made)"] = (name, arguments, keywords)

    def parts(self) -> tuple[str, Any, Any, dict[str, Any]]:
        attributes = {k: v for k, v in self.__dict__.items() if k != "(made)"}
        return (*self.__dict__["(made)"], attributes)


class Names(dict):  # type: ignore[type-arg]
    """The namespace of a test, which resolves names of the program's classes."""

    def __init__(self, names: dict[str, Any]):
        super().__init__(names)
        self.used = self.sent = False
        """Whether the test has named a class; whether it has passed an object to the program."""

    def __missing__(self, name: str) -> Any:
        if not name[:1].isupper() or hasattr(builtins, name):
            raise KeyError(name)
        self.used = True
        self[name] = stand_in = Class(name)
        return stand_in

    def entries(self, values: Any) -> Sent:
        """Returns the sent form of values that may hold objects of the program's classes."""
        return self.with_classes(values) if self.used else (values, [])

    def with_classes(self, values: Any) -> Sent:
        """Returns the sent form of values that may hold built-in classes too."""
        order: list[Any] = []
        positions: dict[int, int] = {}

        def sent(value: Any) -> Any:
            kind = type(value)
            if kind is Made or kind.__module__ == TEST_MODULE or is_built_in(value):
                if id(value) not in positions:
                    positions[id(value)] = len(order)
                    order.append(value)
                return MARK, positions[id(value)]
            if kind is list or kind is tuple:
                return kind(map(sent, value))
            return {k: sent(v) for k, v in value.items()} if kind is dict else value

        values = sent(values)
        self.sent |= any(type(one) is Made for one in order)
        # `order` grows during the loop: objects hold further ones.
        return values, [(name, *map(sent, held)) for name, *held in map(_parts, order)]


def _parts(one: Any) -> Entry:
    kind = type(one)
    if kind is Made:
        return one.parts()  # type: ignore[no-any-return]
    if kind.__module__ != TEST_MODULE:
        return one.__name__, None, None, {}
    if isinstance(one, enum.Enum):
        return kind.__name__, (one.value,), {}, {}
    if isinstance(one, tuple) and hasattr(one, "_fields"):
        return kind.__name__, tuple(one), {}, {}
    if base := next((base for base in _PLAIN if isinstance(one, base)), None):
        return kind.__name__, (base(one),), {}, _state(one)
    return kind.__name__, (), None, _state(one)


def _state(one: Any) -> dict[str, Any]:
    """Returns the attributes that an object of a class of the prelude has."""
    names = [name for kind in type(one).__mro__ for name in _slots(kind) if hasattr(one, name)]
    return getattr(one, "__dict__", {}) | {name: getattr(one, name) for name in names}


def _slots(kind: type) -> tuple[str, ...]:
    slots = kind.__dict__.get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else tuple(slots)
    return tuple(name for name in names if not name.startswith("__"))


class Class(_NoValue):
    """Placeholder of a class of the program; calling it makes a `Made` object."""

    def __init__(self, name: str):
        self._name = name

    def __call__(self, *arguments: Any, **keywords: Any) -> Made:
        return Made(self._name, arguments, keywords)


def rebuilt(values: Any, entries: list[Entry], classes: dict[str, Any]) -> Any:
    """Rebuilds sent values in the program's process, and makes their objects.

    An entry without arguments is the built-in class of that name; one without keywords is made
    without its constructor, for it has the attributes of an object that was already made.

    Raises:
        NameError: the program has no such class. Exceptions of the classes propagate.
    """
    objects: dict[int, Any] = {}

    def received(value: Any) -> Any:
        kind = type(value)
        if kind is tuple and len(value) == 2 and value[0] is MARK:
            return made(value[1])
        if kind is list or kind is tuple:
            return kind(map(received, value))
        return {k: received(v) for k, v in value.items()} if kind is dict else value

    def made(number: int) -> Any:
        if number not in objects:
            name, arguments, keywords, _ = entries[number]
            if arguments is None:
                return getattr(builtins, name)
            if name not in classes:
                raise NameError(f"name '{name}' is not defined")
            if keywords is None:
                objects[number] = object.__new__(classes[name])
            else:
                objects[number] = classes[name](*received(arguments), **received(keywords))
        return objects[number]

    for number, (*_, keywords, attributes) in enumerate(entries):
        put = object.__setattr__ if keywords is None else setattr
        for attribute, value in attributes.items():
            put(made(number), attribute, received(value))
    return received(values)
