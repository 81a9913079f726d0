from .interpreter import Interpreter

__all__ = ["Interpreter"]
