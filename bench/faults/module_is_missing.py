# cause: missing-dependency
import a_module_that_nobody_has
